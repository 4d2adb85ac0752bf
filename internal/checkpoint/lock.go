package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/publish"
)

// Lock is a folder in use by this process. The operating system gives it up
// when the process ends, however it ends.
type Lock struct{ closer io.Closer }

// owner is what owner.json beside the lock says.
type owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	Doing string    `json:"doing"`
}

// Acquire takes the lock of a folder, or says who holds it (store_locked). Other
// errors are the file system's.
func Acquire(fs vfs.FS, dir, doing string) (*Lock, error) {
	if err := publish.MkdirAll(fs, dir, 0o700); err != nil {
		return nil, err
	}
	closer, err := fs.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, lockedError(fs, dir, err)
	}
	host, _ := os.Hostname()
	o := owner{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second), Doing: doing}
	err = publish.File(fs, filepath.Join(dir, "owner.json"), func(w io.Writer) error {
		return json.NewEncoder(w).Encode(o)
	})
	if err != nil {
		_ = closer.Close()
		return nil, err
	}
	return &Lock{closer: closer}, nil
}

// Release gives the folder up.
func (l *Lock) Release() { _ = l.closer.Close() }

// lockedError is what an attempt to lock gave. A lock file that cannot be made or
// opened is a fault of its own and says nothing of another user.
func lockedError(fs vfs.FS, dir string, cause error) error {
	var file *os.PathError
	if errors.As(cause, &file) {
		return cause
	}
	who := "another process"
	end := "end it with SIGINT, which commits what it has in flight"
	if f, err := fs.Open(filepath.Join(dir, "owner.json")); err == nil {
		var o owner
		if json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(&o) == nil {
			who = fmt.Sprintf("process %d on %s since %s (%s)", o.PID, o.Host, o.Since.Format(time.RFC3339), o.Doing)
			end = fmt.Sprintf("`kill -INT %d` ends it in good order", o.PID)
		}
		_ = f.Close()
	}
	return fault.New(fault.StoreLocked, "in use by %s", who).In(dir).Because(cause).
		Hinting("wait until it ends, or use another --out and --store; %s", end)
}
