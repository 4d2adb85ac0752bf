package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"localembed/internal/publish"
)

// Sweep deletes the segments of which the index names no vector, and lets the index
// give up the space of what was taken out of it. A segment of which one vector is
// named stays whole. A segment loses its entry before its file: a crash between the two leaves a
// file that the next opening removes.
func (s *Store) Sweep(ctx context.Context) (err error) {
	s.committing.Lock()
	defer s.committing.Unlock()
	if err := s.sweep(ctx); err != nil {
		return s.wrap(err)
	}
	return nil
}

func (s *Store) sweep(ctx context.Context) error {
	used, err := s.usedSegments()
	if err != nil {
		return err
	}
	var unused []uint32
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tagSegment}, UpperBound: []byte{tagSegment + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		n, _, err := decodeSegment(it.Key(), it.Value())
		if err != nil {
			return errors.Join(s.corrupt("%v", err), it.Close())
		}
		if !used[n] {
			unused = append(unused, n)
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	err = s.write(func(w *pebble.Batch) error {
		for _, n := range unused {
			k, _ := encodeSegment(n, 0)
			if err := w.Delete(k, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Nothing is appended to a segment that goes.
	if s.segments.file != nil && !used[s.segments.number] {
		err := s.segments.file.Close()
		s.segments.file = nil
		if err != nil {
			return err
		}
	}
	for _, n := range unused {
		if err := publish.Remove(s.fs, s.segments.path(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.db.Compact(ctx, []byte{tagKey}, []byte{tagKey + 1}, false)
}

// usedSegments are those of which the index names a vector.
func (s *Store) usedSegments() (map[uint32]bool, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tagKey}, UpperBound: []byte{tagKey + 1}})
	if err != nil {
		return nil, err
	}
	used := map[uint32]bool{}
	for ok := it.First(); ok; ok = it.Next() {
		e, err := decodeEntry(it.Value())
		if err != nil {
			return nil, errors.Join(s.corrupt("%v", err), it.Close())
		}
		used[e.segment] = true
	}
	return used, errors.Join(it.Error(), it.Close())
}

// Planned reports whether the store has the plan of a window that is not published: a
// job is unfinished.
func (s *Store) Planned() (bool, error) { return s.hasAny(tagPlan) }

// Size is the bytes of the vectors' segments. The index beside them is small, and gives
// space back when Pebble gets to it.
func (s *Store) Size() (bytes int64, err error) {
	dir := filepath.Join(s.dir, "vectors")
	names, err := s.fs.List(dir)
	if err != nil {
		return 0, s.wrap(err)
	}
	for _, name := range names {
		info, err := s.fs.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0, s.wrap(err)
		}
		bytes += info.Size()
	}
	return bytes, nil
}
