package backfill

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"localembed/internal/fault"
)

var errEnough = fault.New(fault.Interrupted, "enough").Hinting("go on")

// A run that is stopped while a shard is written gives it up at once: a large one
// takes longer than a signal may take.
func TestAShardBeingWrittenIsGivenUp(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	ctx, cancel := context.WithCancelCause(context.Background())
	j.fs = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, "part-000002.parquet.tmp") && !strings.Contains(op.Path, "failures") {
			cancel(errEnough)
		}
		return nil
	}))
	if _, err := j.try(ctx); !errors.Is(err, errEnough) {
		t.Fatalf("got %v", err)
	}
	for name := range j.sums() {
		if strings.Contains(name, "2.parquet") && !strings.Contains(name, "failures") {
			t.Errorf("%s was written to its end", name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(j.out, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("%v stay behind", left)
	}
	j.fs = nil
	j.run()
	j.check(rows)
}

// countdown is a context that ends when it has been asked some times whether it has.
type countdown struct {
	context.Context
	cancel context.CancelCauseFunc
	left   int
}

func (c *countdown) Err() error {
	if c.left--; c.left == 0 {
		c.cancel(errEnough)
	}
	return c.Context.Err()
}

// A run that is stopped while it reads shards back stops between two pieces of one.
func TestReadingBackCanBeStopped(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	want := j.sums()
	stopped := 0
	for n := 1; ; n++ {
		if err := os.RemoveAll(StoreDir(j.out, "")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		o := j.options(context.Background())
		_, err := Run(&countdown{ctx, cancel, n}, o)
		if err == nil {
			break
		}
		if !errors.Is(err, errEnough) {
			t.Fatalf("stopped at %d: %v", n, err)
		}
		stopped++
	}
	if stopped < 2*6 {
		t.Errorf("reading six shards back asks %d times whether to go on, want twice for each", stopped)
	}
	j.check(rows)
	if got := j.sums(); !maps.Equal(got, want) {
		t.Errorf("the shards differ:\n%v\n%v", got, want)
	}
}

// No device is opened for a run that is being stopped: opening a large model takes longer than a
// signal may take.
func TestNoDeviceIsOpenedForARunThatStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	r := &run{Options: Options{OpenDevices: func() ([]Device, error) {
		t.Error("a device is opened")
		return nil, nil
	}}}
	r.queue.init()
	r.queue.push([]work{{}})
	if err := r.devices(ctx, nil, nil); !errors.Is(err, errEnough) {
		t.Errorf("got %v", err)
	}
}
