package checkpoint

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// latch is Pebble's logger. Pebble's own exits the process on a fatal error, such as
// a full disk; this one remembers the error and lets Pebble go on, so that the
// store can refuse to acknowledge anything from then on.
type latch struct{ fatal atomic.Pointer[error] }

func (l *latch) Infof(string, ...any) {}

func (l *latch) Errorf(string, ...any) {}

func (l *latch) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		// %w keeps the cause, by which a full disk is told from other faults.
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("index: %w", cause)
		}
	}
	l.fatal.CompareAndSwap(nil, &err)
}

func (l *latch) err() error {
	if p := l.fatal.Load(); p != nil {
		return *p
	}
	return nil
}

// private is a file system whose new files and folders only their owner can read:
// the store holds what texts say.
type private struct{ vfs.FS }

func (p private) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return restrict(name)(p.FS.Create(name, c))
}

func (p private) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return restrict(name)(p.FS.OpenReadWrite(name, c, o...))
}

func (p private) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return restrict(name)(p.FS.ReuseForWrite(old, name, c))
}

func (p private) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, 0o700) }

func restrict(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(name, 0o600); err != nil {
			_ = f.Close()
			return nil, err
		}
		return f, nil
	}
}
