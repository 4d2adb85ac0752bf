package backfill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/sortpack"
)

// undisturbed is what a job gives when nothing happens to it.
func undisturbed(t *testing.T, folder string, change func(*job)) (sums map[string]string, computed int64) {
	j := newJob(t, folder)
	change(j)
	r := j.run()
	return j.sums(), r.VectorsComputed
}

// padded limits merge remainders: the plan of what is left is another one than
// what is left of the plan.
var padded = sortpack.Limits{Tokens: 200, Items: 8, Cells: 1 << 20, MinTokens: 100}

// A machine that dies loses what was not synced, wholly or in part. The file system
// is cloned at a random batch with a random part of the unsynced data, and the run
// goes on in the clone.
func TestACrashAtAnyBatch(t *testing.T) {
	folder, _ := fiveWindows(t)
	change := func(j *job) {
		j.limits, j.together = padded, true
		j.out = "/out"
		j.fs = vfs.NewMem()
		if err := j.fs.MkdirAll("/", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want, all := undisturbed(t, folder, change)
	random := rand.New(rand.NewPCG(1, 1))
	for try := range 12 {
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			j := newJob(t, folder)
			change(j)
			computed, crashes := int64(0), 0
			for {
				j.fs = mem
				var runs atomic.Int64
				var clone atomic.Pointer[vfs.MemFS]
				at := 1 + random.Int64N(40)
				ctx, stop := context.WithCancelCause(context.Background())
				keep := random.IntN(101)
				j.before = func([]int64, int, int, []int32) error {
					if runs.Add(1) == at {
						clone.Store(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rand.New(rand.NewPCG(uint64(at), uint64(try)))}))
						stop(errors.New("the machine died"))
					}
					return nil
				}
				r, err := j.try(ctx)
				stop(nil)
				if err == nil {
					computed += r.VectorsComputed
					break
				}
				if clone.Load() == nil {
					t.Fatalf("after %d crashes: %v", crashes, err)
				}
				mem = clone.Load()
				crashes++
			}
			if got := j.sums(); !maps.Equal(got, want) {
				t.Errorf("after %d crashes the shards differ:\n%v\n%v", crashes, got, want)
			}
			t.Logf("%d crashes; the last process computed %d of %d vectors", crashes, computed, all)
		})
	}
}

// A process that is stopped commits what it has in flight, so that the counts of
// all processes add up: no batch runs twice.
func TestStoppedRunsComputeEachVectorOnce(t *testing.T) {
	folder, _ := fiveWindows(t)
	change := func(j *job) { j.limits, j.together = padded, true }
	want, all := undisturbed(t, folder, change)
	random := rand.New(rand.NewPCG(2, 2))
	for try := range 8 {
		j := newJob(t, folder)
		change(j)
		computed, stops := int64(0), 0
		for {
			var runs atomic.Int64
			at := 1 + random.Int64N(30)
			ctx, stop := context.WithCancelCause(context.Background())
			j.before = func([]int64, int, int, []int32) error {
				if runs.Add(1) == at {
					stop(fault.New(fault.Interrupted, "stopped by the test"))
				}
				return nil
			}
			r, err := j.try(ctx)
			stop(nil)
			if r == nil {
				t.Fatalf("try %d: no report: %v", try, err)
			}
			computed += r.VectorsComputed
			if err == nil {
				break
			}
			if !fault.Is(err, fault.Interrupted) {
				t.Fatalf("try %d: %v", try, err)
			}
			if got := ranVectors(j); got != r.VectorsComputed {
				t.Fatalf("try %d: the devices computed %d vectors, %d were committed", try, got, r.VectorsComputed)
			}
			stops++
		}
		if computed != all {
			t.Errorf("try %d: %d vectors were computed in %d processes, want each of %d once", try, computed, stops+1, all)
		}
		if got := j.sums(); !maps.Equal(got, want) {
			t.Errorf("try %d: after %d stops the shards differ", try, stops)
		}
	}
}

func ranVectors(j *job) int64 {
	n := int64(0)
	for _, d := range j.ran {
		n += d.Vectors()
	}
	return n
}

// A device that fails ends the run with the row and the device; the same job goes
// on with a good device.
func TestAFailingDeviceEndsTheRun(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	var runs atomic.Int64
	j.before = func([]int64, int, int, []int32) error {
		if runs.Add(1) == 20 {
			return errors.New("the bus fell off")
		}
		return nil
	}
	_, err := j.try(context.Background())
	e := fault.Of(err)
	if e == nil || e.Class != fault.DeviceFailed || e.Row < 0 || filepath.Dir(e.File) != folder {
		t.Fatalf("error is %+v", e)
	}
	j.before = nil
	r := j.run()
	j.check(rows)
	if unique := distinctTexts(rows); r.VectorsComputed >= unique || r.VectorsComputed+r.VectorsReused != unique {
		t.Errorf("%d computed and %d reused of %d", r.VectorsComputed, r.VectorsReused, unique)
	}
}

// A panic in any stage is the end of the run, not of the process, and nothing waits
// for ever.
func TestAPanicEndsTheRun(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	var runs atomic.Int64
	j.before = func([]int64, int, int, []int32) error {
		if runs.Add(1) == 9 {
			panic("a defect")
		}
		return nil
	}
	if _, err := j.try(context.Background()); !fault.Is(err, fault.Internal) {
		t.Fatalf("error is %v", err)
	}
	j.before = nil
	j.run()
	j.check(rows)
}

// What was planned is computed as planned, also by a process with other limits:
// a machine that died may be followed by a larger one.
func TestAPlanWinsOverNewLimits(t *testing.T) {
	folder, _ := fiveWindows(t)
	oneWindow := func(j *job) { j.limits, j.together, j.window = padded, true, 1000 }
	want, _ := undisturbed(t, folder, oneWindow)
	j := newJob(t, folder)
	oneWindow(j)
	var runs atomic.Int64
	ctx, stop := context.WithCancelCause(context.Background())
	j.before = func([]int64, int, int, []int32) error {
		if runs.Add(1) == 10 {
			stop(fault.New(fault.Interrupted, "stopped by the test"))
		}
		return nil
	}
	if _, err := j.try(ctx); !fault.Is(err, fault.Interrupted) {
		t.Fatalf("error is %v", err)
	}
	j.before = nil
	j.limits = sortpack.Limits{Tokens: 5000, Items: 100, Cells: 1 << 20, MinTokens: 1}
	j.run()
	if !maps.Equal(want, j.sums()) {
		t.Error("the shards are not those of the first plan")
	}
}
