package fake

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"localembed/internal/fault"
	"localembed/internal/onnx"
)

// Faults are what goes wrong on fake devices. The zero value is nothing.
type Faults struct {
	Transient int           // each n-th batch of a device fails once
	Poison    int64         // a batch with this token id fails always
	NaN       int64         // a text with this token id gets NaN
	Crash     int64         // a batch with this token id kills the process
	Kill      int64         // a batch with this token id costs the device
	Memory    int           // a batch of more padded tokens runs out of memory
	Slow      time.Duration // each batch takes this long
	Die       At            // this device is lost at its n-th batch
	Hang      At            // this device does not come back from its n-th batch
	Panic     At            // this device panics at its n-th batch
	Zero      At            // this device gives zero vectors from its n-th batch on
	Count     At            // this device gives too few vectors for its n-th batch
}

// At is the n-th batch, from 1, of one device; n is 0 for never.
type At struct{ Device, N int }

// Syntax is what ParseFaults reads, for help texts.
const Syntax = "transient=N (each N-th batch fails once), poison=ID, nan=ID, kill=ID, crash=ID (texts with this token id fail, get NaN, cost the device, end the process), memory=N (padded tokens that fit), slow=10ms, die=D:N, hang=D:N, panic=D:N, zero=D:N, count=D:N (device D at its N-th batch)"

// ParseFaults reads faults, each as name=value.
func ParseFaults(list []string) (f Faults, err error) {
	for _, s := range list {
		name, value, _ := strings.Cut(s, "=")
		switch name {
		case "transient":
			f.Transient, err = strconv.Atoi(value)
		case "memory":
			f.Memory, err = strconv.Atoi(value)
		case "poison":
			f.Poison, err = strconv.ParseInt(value, 10, 64)
		case "nan":
			f.NaN, err = strconv.ParseInt(value, 10, 64)
		case "kill":
			f.Kill, err = strconv.ParseInt(value, 10, 64)
		case "crash":
			f.Crash, err = strconv.ParseInt(value, 10, 64)
		case "slow":
			f.Slow, err = time.ParseDuration(value)
		case "die":
			f.Die, err = parseAt(value)
		case "hang":
			f.Hang, err = parseAt(value)
		case "panic":
			f.Panic, err = parseAt(value)
		case "zero":
			f.Zero, err = parseAt(value)
		case "count":
			f.Count, err = parseAt(value)
		default:
			err = fmt.Errorf("there is no fault %q", name)
		}
		if err != nil {
			return f, fmt.Errorf("%q: %w", s, err)
		}
	}
	return f, nil
}

func parseAt(s string) (a At, err error) {
	device, n, _ := strings.Cut(s, ":")
	if a.Device, err = strconv.Atoi(device); err == nil {
		a.N, err = strconv.Atoi(n)
	}
	return a, err
}

func (a At) is(d *Device, n int64) bool { return a.N > 0 && a.Device == d.Number && int64(a.N) == n }

// meet lets happen what is due at the n-th batch.
func (f *Faults) meet(d *Device, n int64, ids []int64, items, length int) error {
	time.Sleep(f.Slow)
	has := func(id int64) bool { return id > 0 && slices.Contains(ids, id) }
	failAs := func(class fault.Class, kind onnx.Kind, what string) error {
		return &onnx.Error{Kind: kind, Device: d.DeviceName, Fault: fault.New(class, "%s: a batch of %d texts of %d tokens: %s", d.DeviceName, items, length, what)}
	}
	fail := func(kind onnx.Kind, what string) error { return failAs(fault.DeviceFailed, kind, what) }
	switch {
	case has(f.Crash):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case f.Hang.is(d, n):
		select {}
	case f.Panic.is(d, n):
		panic("a drill")
	case f.Count.is(d, n):
		return failAs(fault.BadVectors, onnx.Fatal, fmt.Sprintf("it gave %d vectors", items-1))
	case f.Die.is(d, n):
		return fail(onnx.Lost, "the device is lost")
	case has(f.Kill):
		return fail(onnx.Lost, "the batch cost the device")
	case f.Memory > 0 && items*length > f.Memory:
		return fail(onnx.OutOfMemory, "out of memory")
	case has(f.Poison):
		return fail(onnx.Transient, "it always fails")
	case f.Transient > 0 && n%int64(f.Transient) == 0:
		return fail(onnx.Transient, "it failed this time")
	}
	return nil
}

// spoil changes the vectors of a batch as its faults say.
func (f *Faults) spoil(d *Device, n int64, ids []int64, items, length int, out []float32) {
	for i := range items {
		if f.NaN > 0 && slices.Contains(ids[i*length:(i+1)*length], f.NaN) {
			out[(i+1)*d.Dim-1] = float32(math.NaN())
		}
	}
	if f.Zero.N > 0 && f.Zero.Device == d.Number && n >= int64(f.Zero.N) {
		clear(out)
	}
}
