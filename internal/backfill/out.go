package backfill

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/publish"
	"localembed/internal/shard"
)

// StateDir is the folder inside OUT that holds all but the shards: the lock, the
// progress and, by default, the store.
func StateDir(out string) string { return filepath.Join(out, ".localembed") }

// StoreDir is where a job keeps its store: --store, or a folder inside StateDir.
func StoreDir(out, store string) string {
	if store != "" {
		return store
	}
	return filepath.Join(StateDir(out), "store")
}

// openOut takes the output folder for this run: one that is empty or ours, that
// nobody else uses, and whose job is the same.
func openOut(vfsys vfs.FS, out string, job Job, yes bool) (*checkpoint.Lock, error) {
	if err := checkOut(vfsys, out, job, yes); err != nil {
		return nil, err
	}
	if err := publish.MkdirAll(vfsys, out, 0o755); err != nil {
		return nil, outError(out, err)
	}
	lock, err := checkpoint.Acquire(vfsys, StateDir(out), "localembed run --out "+out)
	if err != nil {
		return nil, outError(out, err)
	}
	// What was checked may have changed until the lock was taken.
	err = checkOut(vfsys, out, job, yes)
	if err == nil {
		err = removeTemporary(vfsys, out)
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// checkOut says whether the job may write into the folder: it is not there, empty,
// or of the same job, of which it would delete the most only with yes.
func checkOut(vfsys vfs.FS, out string, job Job, yes bool) error {
	if info, err := vfsys.Stat(out); err == nil && !info.IsDir() {
		return fault.New(fault.Usage, "the output is a file").In(out).Hinting("give a new folder with --out")
	}
	names, err := vfsys.List(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return outError(out, err)
	}
	old, err := ReadJob(vfsys, out)
	if err != nil {
		return err
	}
	if old != nil {
		if err := old.compare(job, out); err != nil || yes {
			return err
		}
		return old.shrunk(job, out)
	}
	for _, name := range names {
		// A run that was killed before it wrote job.json leaves only these.
		if name != ".localembed" && name != jobFile+publish.TempSuffix {
			return fault.New(fault.Usage, "the output folder is not empty and not one of ours (it has %q and no %s)", name, jobFile).In(out).
				Hinting("give a new folder with --out")
		}
	}
	return nil
}

// removeTemporary deletes what a killed run left half written.
func removeTemporary(vfsys vfs.FS, out string) error {
	for _, dir := range []string{out, filepath.Join(out, shard.FailuresDir), StateDir(out)} {
		names, err := vfsys.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return outError(out, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, publish.TempSuffix) {
				if err := vfsys.Remove(filepath.Join(dir, name)); err != nil {
					return outError(out, err)
				}
			}
		}
	}
	return nil
}

// outError gives an error of the file system the output folder's name where it
// has no better one.
func outError(out string, err error) error {
	if err == nil {
		return nil
	}
	var e *fault.Error
	if errors.As(err, &e) {
		return err
	}
	e = fault.Of(err)
	if e.Class == fault.Internal {
		e = fault.New(fault.IOError, "the output could not be written").Because(err).
			Hinting("check the folder and its permissions, then run the same command again")
	}
	if e.File == "" {
		e.File = out
	}
	return e
}

// ourParts lists the parts in a folder, OUT or its failures, that localembed made.
func (r *run) ourParts(dir string) ([]shard.Part, error) {
	parts, err := shard.List(r.fs, dir)
	if err != nil {
		return nil, outError(r.Out, err)
	}
	ours := parts[:0]
	for _, p := range parts {
		info, err := shard.Footer(r.fs, p.Path)
		if err != nil {
			return nil, outError(r.Out, err)
		}
		if info.State == shard.Good || info.State == shard.OtherVersion {
			ours = append(ours, p)
		}
	}
	return ours, nil
}
