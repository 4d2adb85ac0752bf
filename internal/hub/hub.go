// Package hub brings a model from a model hub into the cache that the hub's own
// clients use, and finds it there again.
//
// It guarantees: only the files that the caller wants are fetched; each is checked by
// the hub's own checksum before it gets its name, and is whole or absent; an
// interrupted download goes on where it ended, in this process or the next; two
// processes may fetch the same model; no name from the server leads out of the cache;
// the token goes to the endpoint alone, never to a host that it redirects to.
//
// # Cache
//
//	CACHE/models--ORG--NAME/blobs/ETAG              content; ETAG is its SHA-256, or for small
//	                                                files the SHA-1 that git gives it
//	CACHE/models--ORG--NAME/blobs/ETAG.incomplete   the first bytes of a download
//	CACHE/models--ORG--NAME/snapshots/COMMIT/FILE   a link to ../../blobs/ETAG
//	CACHE/models--ORG--NAME/refs/REVISION           the commit of a branch or tag; written
//	                                                when the snapshot has all that was wanted
//	CACHE/.locks/models--ORG--NAME/ETAG.lock        held (flock) while the blob is fetched;
//	                                                refs.lock while a ref is written
package hub

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"localembed/internal/fault"
)

// defaultRevision is the branch of a name without a revision.
const defaultRevision = "main"

// Name is a model on a hub.
type Name struct {
	Model    string // org/name
	Revision string // branch, tag or commit
}

var (
	modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	revision  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
	commitID  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Parse reads org/name or org/name@revision; ok is false where s has another form.
func Parse(s string) (n Name, ok bool) {
	n.Model, n.Revision, ok = strings.Cut(s, "@")
	if !ok {
		n.Revision = defaultRevision
	}
	// A revision becomes the path of a file in the cache.
	ok = modelName.MatchString(n.Model) && !strings.Contains(n.Model, "--") && !strings.Contains(n.Model, "..") &&
		revision.MatchString(n.Revision) && filepath.IsLocal(n.Revision) && !strings.Contains(n.Revision, "..")
	return n, ok
}

func (n Name) String() string { return n.Model + "@" + n.Revision }

// Options say how a model is fetched.
type Options struct {
	// Wanted says which of the model's files are wanted, given what is in the folder
	// dir so far. It is asked again until all of them are there.
	Wanted   func(dir string, names []string) []string
	Progress func(Progress) // called after each piece read, if not nil
	Log      *slog.Logger
}

// Progress is how far the download of one file is.
type Progress struct {
	File        string
	Done, Total int64 // bytes
}

// Model is a model in the cache.
type Model struct {
	Dir    string // the snapshot
	Commit string
}

// Fetch asks the hub which commit the name means, brings what is wanted of it into
// the cache, and returns where it lies. Offline, or where the hub cannot be reached, it
// takes what the cache has. Errors are *fault.Error of class no_such_file,
// model_refused, disk_full, corrupt_file or io_error.
func Fetch(ctx context.Context, n Name, o Options) (*Model, error) {
	s, err := readSettings()
	if err != nil {
		return nil, err
	}
	c := &cache{root: s.cache, dir: filepath.Join(s.cache, "models--"+strings.ReplaceAll(n.Model, "/", "--"))}
	if s.offline {
		m, err := c.find(n)
		if m == nil && err == nil {
			err = fault.New(fault.NoSuchFile, "the model %s is not in the cache, and HF_HUB_OFFLINE is set", n).In(c.dir).
				Hinting("%s", s.copyHint(n))
		}
		return m, err
	}
	h := newClient(s, n)
	list, err := h.list(ctx)
	var away *unreachable
	if errors.As(err, &away) {
		m, cacheErr := c.find(n)
		if cacheErr != nil {
			return nil, cacheErr
		}
		if m == nil {
			return nil, fault.New(fault.IOError, "the model %s is not in the cache, and the hub at %s cannot be reached", n, s.endpoint).Because(away.err).
				Hinting("%s", s.copyHint(n))
		}
		o.Log.Warn("the hub cannot be reached; the model is taken from the cache", "model", n.Model, "commit", m.Commit, "cause", away.err)
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Model{Dir: c.snapshot(list.commit), Commit: list.commit}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return nil, fault.Of(err)
	}
	names := make([]string, 0, len(list.files))
	for name := range list.files {
		names = append(names, name)
	}
	for {
		fetched := false
		for _, name := range o.Wanted(m.Dir, names) {
			new, err := h.bring(ctx, c, list, name, o)
			if err != nil {
				return nil, s.explain(err, n)
			}
			fetched = fetched || new
		}
		if !fetched {
			break
		}
	}
	return m, c.remember(ctx, n.Revision, m.Commit)
}

// IsFolder says whether s is something on this disk, which wins over a hub's name.
func IsFolder(s string) bool {
	_, err := os.Stat(s)
	return !errors.Is(err, fs.ErrNotExist)
}
