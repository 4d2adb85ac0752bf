package checkpoint

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"localembed/internal/key"
)

// Batch is what Commit writes whole or not at all.
type Batch struct {
	ID        [32]byte
	Dim       int
	Keys      []key.Key
	NTokens   []int32
	Truncated []bool
	Vectors   []float32 // len(Keys) × Dim
}

// BatchID identifies a batch by its content keys.
func BatchID(keys []key.Key) [32]byte {
	h := sha256.New()
	for i := range keys {
		h.Write(keys[i][:])
	}
	return [32]byte(h.Sum(nil))
}

// Commit makes batches durable with one sync of the segment and one of the
// index, or of each segment that they fill. When it returns nil all of them are on
// disk; otherwise each counts or does not, and the next opening tells.
// A vector that is there already is not replaced: the first one stays, so
// that a vector never changes once it may have been published.
func (s *Store) Commit(batches []Batch) error {
	s.committing.Lock()
	defer s.committing.Unlock()
	if err := s.commit(batches); err != nil {
		return s.wrap(err)
	}
	return nil
}

func (s *Store) commit(batches []Batch) error {
	batches, absent, err := s.missing(batches)
	if err != nil {
		return err
	}
	for len(batches) > 0 {
		if err := s.segments.begin(); err != nil {
			return err
		}
		// A segment is closed after the batch that fills it.
		n, firsts := 0, []int64(nil)
		for n < len(batches) && (n == 0 || s.segments.length < maxSegment) {
			b := batches[n]
			if len(b.Vectors) != len(b.Keys)*b.Dim {
				return fmt.Errorf("a batch of %d texts has %d values instead of %d × %d", len(b.Keys), len(b.Vectors), len(b.Keys), b.Dim)
			}
			first, err := s.segments.append(b)
			if err != nil {
				return err
			}
			firsts = append(firsts, first)
			n++
		}
		if err := s.segments.file.SyncData(); err != nil {
			return err
		}
		if err := s.write(func(w *pebble.Batch) error { return s.enter(w, batches[:n], firsts, absent) }); err != nil {
			return err
		}
		batches = batches[n:]
	}
	return nil
}

// missing drops the batches whose every vector is there already, and lists the
// keys of the others that are not.
func (s *Store) missing(batches []Batch) (todo []Batch, absent map[key.Key]bool, err error) {
	absent = map[key.Key]bool{}
	for _, b := range batches {
		entries := make([]Entry, len(b.Keys))
		if err := s.Lookup(b.Keys, entries, nil); err != nil {
			return nil, nil, err
		}
		before := len(absent)
		for i, e := range entries {
			if !e.Found {
				absent[b.Keys[i]] = true
			}
		}
		if len(absent) > before {
			todo = append(todo, b)
		}
	}
	return todo, absent, nil
}

// enter writes the index entries of appended batches for the absent keys, each
// for the first of its vectors.
func (s *Store) enter(w *pebble.Batch, batches []Batch, firsts []int64, absent map[key.Key]bool) error {
	failures, err := s.HasFailures()
	if err != nil {
		return err
	}
	for i, b := range batches {
		for j, k := range b.Keys {
			if !absent[k] {
				continue
			}
			if failures { // it was tried again, and is no failure any more
				if err := w.Delete(tagged(tagFailure, k), nil); err != nil {
					return err
				}
			}
			delete(absent, k)
			v := bytesOf(b.Vectors[j*b.Dim : (j+1)*b.Dim])
			e := Entry{
				segment: s.segments.number, offset: firsts[i] + int64(j*b.Dim*4), dim: uint32(b.Dim),
				NTokens: b.NTokens[j], Truncated: b.Truncated[j], crc: crc32.Checksum(v, castagnoli),
			}
			if err := w.Set(tagged(tagKey, k), e.encode(), nil); err != nil {
				return err
			}
		}
	}
	k, v := encodeSegment(s.segments.number, s.segments.length)
	return w.Set(k, v, nil)
}

// Published records that the shard of a window is published: the store holds
// each of its vectors, and the window's plan is done with.
func (s *Store) Published(window, shard [32]byte) error {
	return s.write(func(w *pebble.Batch) error {
		if err := w.Delete(tagged(tagPlan, window), nil); err != nil {
			return err
		}
		return w.Set(tagged(tagShard, shard), nil, nil)
	})
}

// Holds records that the store holds every vector of a shard, after they were
// read back from it.
func (s *Store) Holds(shard [32]byte) error {
	return s.write(func(w *pebble.Batch) error { return w.Set(tagged(tagShard, shard), nil, nil) })
}

// HasShard reports whether the store holds every vector of a shard.
func (s *Store) HasShard(shard [32]byte) (bool, error) {
	return s.has(tagged(tagShard, shard))
}

// HasPlan reports whether a window has a plan: it is not recorded as published.
func (s *Store) HasPlan(window [32]byte) (bool, error) {
	return s.has(tagged(tagPlan, window))
}

func (s *Store) has(k []byte) (bool, error) {
	_, ok, err := s.get(k)
	if err != nil {
		return false, s.wrap(err)
	}
	return ok, nil
}
