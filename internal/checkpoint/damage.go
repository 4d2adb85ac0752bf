package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"localembed/internal/key"
)

// Damaged lists the positions of found entries whose vector cannot be had: it does not
// match its checksum, or its segment is missing or too short. An error is one of the file
// system. Memory is bounded; vectors are read in the order in which they lie on disk.
func (s *Store) Damaged(entries []Entry) ([]int, error) {
	order := make([]int32, 0, len(entries))
	for i := range entries {
		if entries[i].Found {
			order = append(order, int32(i))
		}
	}
	sortByPlace(order, entries)
	var damaged []int
	var buf []byte
	for _, i := range order {
		e := &entries[i]
		why, err := s.damage(e, e.memory(&buf))
		if err != nil {
			return nil, err
		}
		if why != "" {
			damaged = append(damaged, int(i))
		}
	}
	slices.Sort(damaged)
	return damaged, nil
}

// damage reads an entry's vector into v and says in words what is wrong with it, "" if
// nothing.
func (s *Store) damage(e *Entry, v []byte) (string, error) {
	segment := s.segments.path(e.segment)
	switch err := s.segments.readAt(e.segment, v, e.offset); {
	case errors.Is(err, io.EOF):
		return fmt.Sprintf("%s ends before the vector at byte %d", segment, e.offset), nil
	case errors.Is(err, fs.ErrNotExist):
		return segment + " is missing", nil
	case err != nil:
		return "", s.wrap(fmt.Errorf("vector at %d of %s: %w", e.offset, segment, err))
	case crc32.Checksum(v, castagnoli) != e.crc:
		return fmt.Sprintf("the vector at byte %d of %s does not match its checksum", e.offset, segment), nil
	}
	return "", nil
}

// memory is room for the entry's vector, in buf where it is large enough.
func (e *Entry) memory(buf *[]byte) []byte {
	n := 4 * int(e.dim)
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}

// Forget takes keys out of the index, durably: their vectors are damaged, or published
// shards hold them as well. No shard counts as held any more, so that what is needed of
// them is read back. Bytes stay until Sweep.
func (s *Store) Forget(keys []key.Key) error {
	return s.write(func(w *pebble.Batch) error {
		for _, k := range keys {
			if err := w.Delete(tagged(tagKey, k), nil); err != nil {
				return err
			}
		}
		return w.DeleteRange([]byte{tagShard}, []byte{tagShard + 1}, nil)
	})
}

// Verify looks at every vector of the store and gives found each damage as a sentence. It
// reports how many vectors it looked at. Memory is bounded.
func (s *Store) Verify(found func(path, why string) error) (vectors int64, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tagKey}, UpperBound: []byte{tagKey + 1}})
	if err != nil {
		return 0, s.wrap(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	const some = 1 << 16 // entries that are sorted by place at a time
	var entries []Entry
	var buf []byte
	check := func() error {
		order := make([]int32, len(entries))
		for i := range order {
			order[i] = int32(i)
		}
		sortByPlace(order, entries)
		for _, i := range order {
			why, err := s.damage(&entries[i], entries[i].memory(&buf))
			if err != nil {
				return err
			}
			if why != "" {
				if err := found(s.segments.path(entries[i].segment), why); err != nil {
					return err
				}
			}
		}
		vectors += int64(len(entries))
		entries = entries[:0]
		return nil
	}
	for ok := it.First(); ok; ok = it.Next() {
		e, err := decodeEntry(it.Value())
		if err != nil {
			if err := found(s.dir, err.Error()); err != nil {
				return vectors, err
			}
			continue
		}
		if entries = append(entries, e); len(entries) == some {
			if err := check(); err != nil {
				return vectors, err
			}
		}
	}
	if err := it.Error(); err != nil {
		return vectors, s.wrap(err)
	}
	return vectors, check()
}
