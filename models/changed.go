package models

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"localembed/internal/fault"
)

// origin is what a model was read from: paths relative to its folder.
type origin struct {
	json, weights []string
	stats         map[string]fs.FileInfo // of all of them, when they were read
}

func (f *folder) origin(weights []string) origin {
	return origin{slices.Collect(maps.Keys(f.read)), weights, f.stats}
}

// Unchanged returns an error of class bad_vectors where a file that decides the vectors is
// not the one that was read: graphs are made when devices open, and weights are mapped in
// place, so vectors of another model could come out under this one's digest. It looks at
// sizes, times and inodes; where those differ it reads the files again, and a folder
// that was only copied or touched is unchanged. Not for several goroutines.
func (m *Model) Unchanged() error {
	changed := ""
	for rel, was := range m.origin.stats {
		is, err := os.Stat(filepath.Join(m.Dir, rel))
		if err != nil || is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime()) || !os.SameFile(is, was) {
			changed = rel
			break
		}
	}
	if changed == "" {
		return nil
	}
	now, err := openFolder(m.Dir)
	if err == nil {
		for _, rel := range m.origin.json {
			if _, err = now.bytes(rel); err != nil {
				break
			}
		}
	}
	digest := ""
	if err == nil {
		digest, err = now.digest(m.origin.weights)
	}
	if err != nil || digest != m.Recipe.ModelDigest {
		return fault.New(fault.BadVectors, "the model's files changed while they were in use").In(filepath.Join(m.Dir, changed)).Because(err).
			Hinting("nothing that was computed since is kept: put the old files back and run the same command again, or give the new model an OUT of its own")
	}
	m.origin.stats = now.stats
	return nil
}
