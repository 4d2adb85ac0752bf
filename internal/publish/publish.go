// Package publish writes files so that a reader sees a whole file or none: the
// bytes go to a temporary file in the same folder, are synced, renamed over the
// name, and the folder is synced. A failure at any step removes the temporary
// file and leaves the old file, if there was one, as it was.
//
// Everything goes through a vfs.FS, so that tests can fail each operation in
// turn and drop what was not synced.
package publish

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TempSuffix ends the name of every temporary file; readers ignore such names.
const TempSuffix = ".tmp"

// File publishes what write produces at path. The folder must exist.
func File(fs vfs.FS, path string, write func(io.Writer) error) error {
	return file(fs, path, false, write)
}

// Private is File for a file that only its owner may read: it holds raw text.
func Private(fs vfs.FS, path string, write func(io.Writer) error) error {
	return file(fs, path, true, write)
}

func file(fs vfs.FS, path string, private bool, write func(io.Writer) error) (err error) {
	tmp := path + TempSuffix
	f, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if f != nil {
				_ = f.Close()
			}
			_ = fs.Remove(tmp)
		}
	}()
	if private && f.Fd() != vfs.InvalidFd { // in memory there are no permissions
		if err = os.Chmod(tmp, 0o600); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w); err != nil {
		return err
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	err, f = f.Close(), nil
	if err != nil {
		return err
	}
	if err = fs.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(fs, fs.PathDir(path))
}

// Remove deletes a file and makes the deletion durable.
func Remove(fs vfs.FS, path string) error {
	if err := fs.Remove(path); err != nil {
		return err
	}
	return SyncDir(fs, fs.PathDir(path))
}

// MkdirAll makes a folder and the missing ones above it, and makes them durable: a
// file in a folder that is lost is lost too, however well it was synced.
func MkdirAll(vfsys vfs.FS, dir string, perm os.FileMode) error {
	var parents []string
	for dir, parent := dir, vfsys.PathDir(dir); parent != dir; dir, parent = parent, vfsys.PathDir(parent) {
		_, err := vfsys.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parents = append(parents, parent)
	}
	if err := vfsys.MkdirAll(dir, perm); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := SyncDir(vfsys, parent); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes the names in a folder durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		_ = d.Close()
		return err
	}
	return d.Close()
}
