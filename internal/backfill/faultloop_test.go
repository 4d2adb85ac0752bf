package backfill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"localembed/internal/fault"
)

// soak is set by `make soak`: every operation instead of one in some.
const soak = "LOCALEMBED_SOAK"

// operations calls do with 1, 2, … until it returns false: all of them in a soak, else
// one in stride, shifted so that the first ones, which open files, are all among them.
func operations(stride int, do func(i int) bool) {
	if os.Getenv(soak) != "" {
		stride = 1
	}
	for i := 1; do(i); i++ {
		if i > 40 {
			i += stride - 1
		}
	}
}

// inMemory is a job of three windows on a file system in memory.
func inMemory(t *testing.T, corpus string, fs vfs.FS) *job {
	j := newJob(t, corpus)
	j.limits, j.together, j.window, j.devices = padded, true, 20, 1
	j.out, j.fs = "/out", fs
	return j
}

func threeWindows(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "corpus.parquet")
	rows := numbered(0, 50)
	rows[7].Text, rows[30].Text = nil, str(" ")
	writeCorpus(t, path, rows)
	return path
}

// Every operation of the file system fails once, as it does on a disk that is full or
// broken. The run ends with a sentence or gets over it; the same command goes on, and
// the shards have the bytes of an undisturbed run.
func TestEveryOperationFailsOnce(t *testing.T) {
	corpus := threeWindows(t)
	undisturbed := inMemory(t, corpus, vfs.NewMem())
	undisturbed.run()
	want := undisturbed.sums()
	for _, cause := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		failed := 0
		operations(29, func(i int) bool {
			mem := vfs.NewMem()
			var seen atomic.Int64
			var what atomic.Value
			j := inMemory(t, corpus, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if seen.Add(1) != int64(i) {
					return nil
				}
				what.Store(fmt.Sprintf("operation %d, kind %d of %s", i, op.Kind, op.Path))
				return &os.PathError{Op: "operation", Path: op.Path, Err: cause}
			})))
			_, err := j.try(context.Background())
			if what.Load() == nil {
				if err != nil {
					t.Errorf("nothing failed, and the run ended with %v", err)
				}
				return false
			}
			if err != nil {
				failed++
				e := fault.Of(err)
				wanted := map[syscall.Errno]fault.Class{syscall.ENOSPC: fault.DiskFull, syscall.EIO: fault.IOError}[cause]
				if e.Class != wanted || e.File == "" || e.Hint == "" {
					t.Errorf("%s: %s: the error is %s in %q (%s): %v", cause, what.Load(), e.Class, e.File, e.Hint, err)
				}
			}
			again := inMemory(t, corpus, mem)
			if _, err := again.try(context.Background()); err != nil {
				t.Errorf("%s: %s: the next run: %v", cause, what.Load(), err)
				return true
			}
			if got := again.sums(); !maps.Equal(got, want) {
				t.Errorf("%s: %s: the shards differ", cause, what.Load())
			}
			return true
		})
		t.Logf("%s: %d runs ended with an error", cause, failed)
	}
}

// The machine dies at every operation, and an arbitrary part of what was not synced is
// lost.
func TestTheMachineDiesAtEveryOperation(t *testing.T) {
	corpus := threeWindows(t)
	undisturbed := inMemory(t, corpus, vfs.NewMem())
	undisturbed.run()
	want := undisturbed.sums()
	operations(37, func(i int) bool {
		mem := vfs.NewCrashableMem()
		random := rand.New(rand.NewPCG(uint64(i), 5))
		var seen atomic.Int64
		var clone atomic.Pointer[vfs.MemFS]
		dead := errors.New("the machine died")
		ctx, stop := context.WithCancelCause(context.Background())
		defer stop(nil)
		j := inMemory(t, corpus, errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if seen.Add(1) == int64(i) {
				clone.Store(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random}))
				stop(dead)
			}
			return nil
		})))
		_, _ = j.try(ctx)
		if clone.Load() == nil {
			return false
		}
		again := inMemory(t, corpus, clone.Load())
		if _, err := again.try(context.Background()); err != nil {
			t.Errorf("operation %d: the next run: %v", i, err)
			return true
		}
		if got := again.sums(); !maps.Equal(got, want) {
			t.Errorf("operation %d: the shards differ", i)
		}
		return true
	})
}
