package hub

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gofrs/flock"

	"localembed/internal/fault"
	"localembed/internal/publish"
)

// cache is the folder of one model in the cache.
type cache struct {
	root string // of all models
	dir  string // of this one
}

func (c *cache) snapshot(commit string) string { return filepath.Join(c.dir, "snapshots", commit) }
func (c *cache) blob(etag string) string       { return filepath.Join(c.dir, "blobs", etag) }
func (c *cache) ref(revision string) string {
	return filepath.Join(c.dir, "refs", filepath.FromSlash(revision))
}

// hold locks what has a name among all processes, waiting for it.
func (c *cache) hold(ctx context.Context, name string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(c.root, ".locks", filepath.Base(c.dir), name+".lock"))
	if err := publish.MkdirAll(vfs.Default, filepath.Dir(lock.Path()), 0o755); err != nil {
		return nil, err
	}
	_, err := lock.TryLockContext(ctx, 100*time.Millisecond)
	return lock, err
}

// find looks a model up; nil where the cache does not have it.
func (c *cache) find(n Name) (*Model, error) {
	commit := n.Revision
	if !commitID.MatchString(commit) {
		b, err := os.ReadFile(c.ref(n.Revision))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fault.Of(err)
		}
		if commit = strings.TrimSpace(string(b)); !commitID.MatchString(commit) {
			return nil, fault.New(fault.CorruptFile, "it holds %.80q, which is not a commit", commit).In(c.ref(n.Revision)).
				Hinting("delete the file, and fetch the model again where the hub can be reached")
		}
	}
	m := &Model{Dir: c.snapshot(commit), Commit: commit}
	if st, err := os.Stat(m.Dir); err != nil || !st.IsDir() {
		return nil, nil
	}
	return m, nil
}

// has says whether the snapshot holds a file with the size that it must have.
func (c *cache) has(commit, name string, f remote) bool {
	st, err := os.Stat(filepath.Join(c.snapshot(commit), filepath.FromSlash(name)))
	return err == nil && st.Mode().IsRegular() && st.Size() == f.size
}

// link gives a blob its name in a snapshot.
func (c *cache) link(commit, name, etag string) error {
	path := filepath.Join(c.snapshot(commit), filepath.FromSlash(name))
	dir := filepath.Dir(path)
	if err := publish.MkdirAll(vfs.Default, dir, 0o755); err != nil {
		return err
	}
	target, err := filepath.Rel(dir, c.blob(etag))
	if err != nil {
		return err
	}
	tmp := path + publish.TempSuffix
	_ = os.Remove(tmp)
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return publish.SyncDir(vfs.Default, dir)
}

// remember writes which commit a branch or tag is.
func (c *cache) remember(ctx context.Context, revision, commit string) error {
	if revision == commit {
		return nil
	}
	path := c.ref(revision)
	lock, err := c.hold(ctx, "refs")
	if err != nil {
		return fault.Of(err)
	}
	defer func() { _ = lock.Unlock() }()
	if b, err := os.ReadFile(path); err == nil && string(b) == commit {
		return nil
	}
	if err := publish.MkdirAll(vfs.Default, filepath.Dir(path), 0o755); err != nil {
		return fault.Of(err)
	}
	return errOf(publish.File(vfs.Default, path, func(w io.Writer) error {
		_, err := io.WriteString(w, commit)
		return err
	}))
}

// errOf is fault.Of that keeps nil an untyped one.
func errOf(err error) error {
	if err == nil {
		return nil
	}
	return fault.Of(err)
}
