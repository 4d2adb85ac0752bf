package models

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"sort"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// digest is the model digest: the SHA-256 of the JSON files that were read and
// of the weights, each as its length-prefixed name within the folder and the
// length-prefixed SHA-256 of its content, sorted by name. The weights are read
// whole for it, about 60 ms for 90 MB. Files of prompts and of dimensions are
// left out: what they decide stands in the recipe.
func (f *folder) digest(weights []string) (string, error) {
	sums := map[string][]byte{}
	for rel, b := range f.read {
		if rel == promptsFile {
			continue
		}
		s := sha256.Sum256(b)
		sums[rel] = s[:]
	}
	for _, rel := range weights {
		s, err := f.sum(rel)
		if err != nil {
			return "", fault.Of(err)
		}
		sums[rel] = s
	}
	names := make([]string, 0, len(sums))
	for rel := range sums {
		names = append(names, rel)
	}
	sort.Strings(names)
	var b []byte
	for _, rel := range names {
		b = key.AppendField(b, []byte(filepath.ToSlash(rel)))
		b = key.AppendField(b, sums[rel])
	}
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:]), nil
}

func (f *folder) sum(rel string) ([]byte, error) {
	file, err := os.Open(f.path(rel))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if f.stats[rel], err = file.Stat(); err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, file, make([]byte, 1<<20)); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
