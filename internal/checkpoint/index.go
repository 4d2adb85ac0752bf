package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// Tags, the first byte of every key of the index.
const (
	tagDeaths  = 'd'
	tagFailure = 'f'
	tagKey     = 'k'
	tagPlan    = 'p'
	tagSegment = 's'
	tagVersion = 'v'
	tagShard   = 'w'
	tagSplit   = 'x'
)

func tagged(tag byte, id [32]byte) []byte { return append([]byte{tag}, id[:]...) }

func decodeSegment(k, v []byte) (number uint32, length int64, err error) {
	if len(k) != 5 || len(v) != 8 {
		return 0, 0, fmt.Errorf("a segment entry has %d and %d bytes", len(k), len(v))
	}
	return binary.BigEndian.Uint32(k[1:]), int64(binary.LittleEndian.Uint64(v)), nil
}

func encodeSegment(number uint32, length int64) (k, v []byte) {
	return binary.BigEndian.AppendUint32([]byte{tagSegment}, number), binary.LittleEndian.AppendUint64(nil, uint64(length))
}

// Entry is what the index says of a vector. The zero Entry is none.
type Entry struct {
	Found     bool
	Truncated bool
	NTokens   int32
	segment   uint32
	dim       uint32
	crc       uint32
	offset    int64
}

const entrySize = 4 + 8 + 4 + 4 + 1 + 4

func (e Entry) encode() []byte {
	b := make([]byte, 0, entrySize)
	b = binary.LittleEndian.AppendUint32(b, e.segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.offset))
	b = binary.LittleEndian.AppendUint32(b, e.dim)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.NTokens))
	truncated := byte(0)
	if e.Truncated {
		truncated = 1
	}
	b = append(b, truncated)
	return binary.LittleEndian.AppendUint32(b, e.crc)
}

func decodeEntry(b []byte) (Entry, error) {
	if len(b) != entrySize {
		return Entry{}, fmt.Errorf("an index entry has %d bytes instead of %d", len(b), entrySize)
	}
	return Entry{
		Found:     true,
		segment:   binary.LittleEndian.Uint32(b),
		offset:    int64(binary.LittleEndian.Uint64(b[4:])),
		dim:       binary.LittleEndian.Uint32(b[12:]),
		NTokens:   int32(binary.LittleEndian.Uint32(b[16:])),
		Truncated: b[20] != 0,
		crc:       binary.LittleEndian.Uint32(b[21:]),
	}, nil
}

// Lookup fills entries[i] for keys[i] wherever it is not found yet and wanted
// says so (nil wants all). Keys are looked up in sorted order on all cores,
// which lets neighbours share blocks of the index.
func (s *Store) Lookup(keys []key.Key, entries []Entry, wanted func(i int) bool) error {
	// After a failed commit Pebble still shows what that would have written.
	if err := s.log.err(); err != nil {
		return s.wrap(err)
	}
	order := make([]int32, 0, len(keys))
	for i := range keys {
		if !entries[i].Found && (wanted == nil || wanted(i)) {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	workers := runtime.GOMAXPROCS(0)
	share := (len(order) + workers - 1) / workers
	var group errgroup.Group
	for part := range slices.Chunk(order, max(1, share)) {
		group.Go(func() error { return fault.Guard(func() error { return s.lookUp(keys, entries, part) }) })
	}
	return group.Wait()
}

// lookUp gets the entries of some of the keys.
func (s *Store) lookUp(keys []key.Key, entries []Entry, part []int32) error {
	k := make([]byte, 1+key.Size)
	k[0] = tagKey
	for _, i := range part {
		copy(k[1:], keys[i][:])
		v, closer, err := s.db.Get(k)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return s.wrap(err)
		}
		entries[i], err = decodeEntry(v)
		if err := errors.Join(err, closer.Close()); err != nil {
			return s.corrupt("key %s: %v", keys[i], err)
		}
	}
	return nil
}

// Vectors reads the vectors of entries into dst, one after the other, each of
// dim values, and checks every one against its CRC.
func (s *Store) Vectors(entries []Entry, dim int, dst []float32) error {
	order := make([]int32, len(entries))
	for i := range order {
		order[i] = int32(i)
	}
	sortByPlace(order, entries)
	for _, i := range order {
		e := &entries[i]
		if !e.Found || int(e.dim) != dim {
			return s.corrupt("a vector of %d values is asked for where the index has %d (found: %t)", dim, e.dim, e.Found)
		}
		why, err := s.damage(e, bytesOf(dst[int(i)*dim:(int(i)+1)*dim]))
		if err != nil {
			return err
		}
		if why != "" {
			return fault.New(fault.StoreCorrupt, "the store is damaged: %s", why).In(s.dir).
				Hinting("run the same command again: such vectors are taken from published shards, or computed again")
		}
	}
	return nil
}

// sortByPlace sorts positions of entries by where their vectors lie on disk.
func sortByPlace(order []int32, entries []Entry) {
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &entries[a], &entries[b]
		return cmp.Or(cmp.Compare(x.segment, y.segment), cmp.Compare(x.offset, y.offset))
	})
}
