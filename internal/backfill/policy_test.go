package backfill

import (
	"errors"
	"fmt"
	"testing"

	"localembed/internal/fault"
	"localembed/internal/onnx"
)

// The whole policy: every cause, for a batch and for a single document, after each number
// of failed runs.
func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		cause                       cause
		documents, attempts, killed int
		want                        verdict
		class                       string
	}{
		{transient, 8, 1, 0, retry, ""},
		{transient, 8, 4, 0, retry, ""},
		{transient, 8, 5, 0, split, ""},
		{transient, 1, 4, 0, retry, ""},
		{transient, 1, 5, 0, giveUp, deviceFailed},
		{noMemory, 2, 1, 0, split, ""},
		{noMemory, 1, 4, 0, retry, ""},
		{noMemory, 1, 5, 0, giveUp, outOfMemory},
		{notANumber, 2, 1, 0, split, ""},
		{notANumber, 1, 1, 0, retry, ""},
		{notANumber, 1, 2, 0, giveUp, nonFinite},
		{lost, 8, 1, 1, drop, ""},
		{lost, 1, 1, 1, drop, ""},
		{lost, 8, 1, 2, stop, ""},
		{lost, 1, 1, 2, stop, ""},
		{ended, 2, 3, 0, split, ""},
		{ended, 1, 3, 0, giveUp, crashedDevice},
		{fatal, 8, 1, 0, stop, ""},
		{fatal, 1, 1, 0, stop, ""},
	} {
		got, class := judge(c.cause, c.documents, c.attempts, c.killed)
		if got != c.want || class != c.class {
			t.Errorf("%+v: %d %q", c, got, class)
		}
	}
}

func TestCauses(t *testing.T) {
	device := func(k onnx.Kind) error {
		return fmt.Errorf("around it: %w", &onnx.Error{Kind: k, Fault: fault.New(fault.DeviceFailed, "x")})
	}
	for want, err := range map[cause]error{
		transient: device(onnx.Transient), noMemory: device(onnx.OutOfMemory), lost: device(onnx.Lost), fatal: device(onnx.Fatal),
		notANumber: notFinite{3}, ended: crashes{3},
	} {
		if got := causeOf(err); got != want {
			t.Errorf("%v is %d, want %d", err, got, want)
		}
	}
	for _, err := range []error{errors.New("anything else"), fault.New(fault.BadVectors, "x"), fault.New(fault.DiskFull, "x")} {
		if got := causeOf(err); got != fatal {
			t.Errorf("%v is %d, not fatal", err, got)
		}
	}
	if causeOf(hung{"1m"}) != lost {
		t.Error("a device that does not come back is not lost")
	}
}
