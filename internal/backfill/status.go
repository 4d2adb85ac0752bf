package backfill

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"localembed/internal/fault"
)

// Status is where a job stands, seen from outside.
type Status struct {
	State    string    `json:"state"`    // running, died, finished or stopped
	Progress *Progress `json:"progress"` // as the last process wrote it; nil where it wrote none
	Report   *Report   `json:"report"`   // of the last process that ended in good order; nil if none
}

// ReadStatus says where the job in OUT stands. It takes no lock, so that it may look while a
// run is on.
func ReadStatus(out string) (*Status, error) {
	s := &Status{}
	if err := readJSON(filepath.Join(StateDir(out), progressFile), &s.Progress); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(out, reportFile), &s.Report); err != nil {
		return nil, err
	}
	running, err := locked(filepath.Join(StateDir(out), "lock"))
	if err != nil {
		return nil, err
	}
	p := s.Progress
	switch {
	case running:
		s.State = "running"
	case p == nil && s.Report == nil, p != nil && !p.Over:
		s.State = "died" // where there is neither, before it wrote its first progress
	case p != nil && p.Rows > p.RowsDone:
		s.State = "stopped"
	default:
		s.State = "finished"
	}
	return s, nil
}

// readJSON reads a file of ours; one that is not there leaves v as it is.
func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fault.New(fault.CorruptFile, "it cannot be read").In(path).Because(err).
			Hinting("the next run writes it again")
	}
	return nil
}

// locked asks the operating system whether another process holds a lock on the file.
func locked(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return false, &fs.PathError{Op: "looking at the lock", Path: path, Err: err}
	}
	return lock.Type != syscall.F_UNLCK, nil
}
