package checkpoint

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"localembed/internal/fault"
)

// Pebble acknowledges commits after its log could not be written; the store must not.
func TestAFailedLogIsNeverAcknowledged(t *testing.T) {
	for name, kinds := range map[string][]errorfs.OpKind{
		"write": {errorfs.OpFileWrite},
		"sync":  {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo},
	} {
		t.Run(name, func(t *testing.T) {
			// After the disk gave an error once it works again, or it does not.
			for _, once := range []bool{true, false} {
				mem := vfs.NewCrashableMem()
				var failing atomic.Bool
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					for _, k := range kinds {
						if op.Kind == k && strings.HasSuffix(op.Path, ".log") && failing.Load() {
							failing.Store(!once)
							return &os.PathError{Op: name, Path: op.Path, Err: syscall.ENOSPC}
						}
					}
					return nil
				}))
				s := open(t, fs, "/store")
				commit(t, s, batchOf(0, 3))
				failing.Store(true)
				for range 3 {
					e := wantClass(t, s.Commit([]Batch{batchOf(3, 3)}), fault.DiskFull)
					if !strings.HasPrefix(e.File, "/store") {
						t.Errorf("the error names %q", e.File)
					}
				}
				_ = wantClass(t, s.PutPlan(digest(1), Plan{}), fault.DiskFull)
				_ = wantClass(t, s.Published(digest(1), digest(2)), fault.DiskFull)
				_ = wantClass(t, s.Holds(digest(2)), fault.DiskFull)
				failing.Store(false)
				_ = wantClass(t, s.Commit([]Batch{batchOf(6, 3)}), fault.DiskFull)
				clone := mem.CrashClone(vfs.CrashCloneCfg{})
				_ = s.Close()

				s = open(t, clone, "/store")
				hasAll(t, s, 0, 3)
				commit(t, s, batchOf(3, 6))
				hasAll(t, s, 0, 9)
				closeStore(t, s)
			}
		})
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && strings.HasSuffix(op.Path, ".seg") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	s := open(t, fs, "/store")
	defer closeStore(t, s)
	commit(t, s, batchOf(0, 3))
	full.Store(true)
	if e := wantClass(t, s.Commit([]Batch{batchOf(3, 3)}), fault.DiskFull); e.File != "/store/vectors/000001.seg" {
		t.Errorf("the error names %q", e.File)
	}
	hasNone(t, s, 3, 3)
	// Segments that could not be written can be again.
	full.Store(false)
	commit(t, s, batchOf(6, 3))
	hasAll(t, s, 0, 3)
	hasNone(t, s, 3, 3)
	hasAll(t, s, 6, 3)
}

// Every operation that writes fails in turn, once or from then on. Whatever the
// store answered then, a machine that dies at that moment has all that was
// acknowledged, and the store works again.
func TestEveryFailingOperation(t *testing.T) {
	smallSegments(t)
	for _, once := range []bool{true, false} {
		failed := 0
		for i := int64(0); ; i++ {
			mem := vfs.NewCrashableMem()
			var ops atomic.Int64
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				if n := ops.Add(1) - 1; n == i || n > i && !once {
					return &os.PathError{Op: fmt.Sprint(op.Kind), Path: op.Path, Err: syscall.EIO}
				}
				return nil
			}))
			acknowledged := 0
			s, err := Open("/job/store", Options{FS: fs, Owner: "a test"})
			for n := 0; err == nil && n < 4; n++ {
				if err = s.Commit([]Batch{batchOf(2*n, 2)}); err == nil {
					acknowledged++
				}
			}
			if err == nil {
				err = s.PutPlan(digest(1), Plan{})
			}
			if err != nil {
				failed++
				_ = wantClass(t, err, fault.IOError)
			}
			clone := mem.CrashClone(vfs.CrashCloneCfg{})
			if s != nil {
				_ = s.Close()
			}
			s = open(t, clone, "/job/store")
			hasAll(t, s, 0, 2*acknowledged)
			commit(t, s, batchOf(0, 10))
			hasAll(t, s, 0, 10)
			closeStore(t, s)
			if ops.Load() <= i {
				break // no operation was left to fail
			}
		}
		if failed < 20 {
			t.Errorf("only %d operations made the store fail", failed)
		}
		t.Logf("%d failing operations were reported", failed)
	}
}
