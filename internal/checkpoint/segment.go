package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/key"
	"localembed/internal/publish"
)

// maxSegment is the size after which a new segment is begun. It is a variable
// so that tests can make many small segments.
var maxSegment int64 = 1 << 30

const (
	magic        = "LEB1"
	recordHeader = len(magic) + key.Size + 4 + 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segments are the store's vector files. One is written, all can be read.
type segments struct {
	store *Store

	// Used by the one goroutine that commits.
	number uint32
	length int64 // committed and appended bytes of the written segment
	file   vfs.File
	buf    []byte

	short []string // segments that had not all of their committed bytes at opening, as sentences

	mu      sync.Mutex
	readers map[uint32]vfs.File
}

func (s *segments) path(n uint32) string {
	return filepath.Join(s.store.dir, "vectors", fmt.Sprintf("%06d.seg", n))
}

// openSegments notes segments that have lost committed bytes, cuts the written
// segment at its committed length and removes files that no commit names.
// What a lost part held is found damaged when it is used; nothing is appended to
// such a segment.
func openSegments(store *Store, readOnly bool) (*segments, error) {
	s := &segments{store: store, readers: map[uint32]vfs.File{}}
	it, err := store.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tagSegment}, UpperBound: []byte{tagSegment + 1}})
	if err != nil {
		return nil, err
	}
	committed := map[uint32]bool{}
	whole := true // the last segment
	for ok := it.First(); ok; ok = it.Next() {
		n, length, err := decodeSegment(it.Key(), it.Value())
		if err != nil {
			return nil, errors.Join(store.corrupt("%v", err), it.Close())
		}
		committed[n] = true
		info, err := store.fs.Stat(s.path(n))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.short = append(s.short, fmt.Sprintf("%s is missing, of which %d bytes were committed", s.path(n), length))
			whole = false
		case err != nil:
			return nil, errors.Join(err, it.Close())
		case info.Size() < length:
			s.short = append(s.short, fmt.Sprintf("%s has %d bytes, of which %d were committed", s.path(n), info.Size(), length))
			whole = false
		default:
			whole = true
		}
		s.number, s.length = n, length
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, err
	}
	names, err := store.fs.List(filepath.Join(store.dir, "vectors"))
	if errors.Is(err, fs.ErrNotExist) {
		names, err = nil, publish.MkdirAll(store.fs, filepath.Join(store.dir, "vectors"), 0o700)
	}
	if err != nil {
		return nil, err
	}
	if store.fresh && slices.ContainsFunc(names, isSegment) {
		return nil, store.corrupt("it has vectors, and the index that names them is missing or empty")
	}
	if readOnly {
		return s, nil
	}
	if err := s.removeUncommitted(names, committed); err != nil {
		return nil, err
	}
	if !whole || s.number == 0 {
		return s, nil
	}
	return s, s.reopen()
}

func isSegment(name string) bool {
	n, err := segmentNumber(name)
	return err == nil && n > 0
}

// segmentNumber is the number in a segment's file name.
func segmentNumber(name string) (uint32, error) {
	digits, ok := strings.CutSuffix(name, ".seg")
	if !ok || len(digits) < 6 {
		return 0, errors.New("not a segment")
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err
}

// removeUncommitted deletes segments that no commit names: they were begun when their
// process died, or pruned.
func (s *segments) removeUncommitted(names []string, committed map[uint32]bool) error {
	for _, name := range names {
		n, err := segmentNumber(name)
		if err != nil || committed[n] {
			continue
		}
		if err := publish.Remove(s.store.fs, s.path(n)); err != nil {
			return err
		}
	}
	return nil
}

// reopen goes on with the last segment, cut behind the last commit.
func (s *segments) reopen() (err error) {
	if s.file, err = s.store.fs.OpenReadWrite(s.path(s.number), vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	// A file system without truncation (in tests) keeps the tail, which the next
	// append overwrites and no index entry names.
	if f, ok := s.file.(interface{ Truncate(int64) error }); ok {
		return f.Truncate(s.length)
	}
	return nil
}

// begin makes sure that there is a segment to append to.
func (s *segments) begin() error {
	if s.file != nil && s.length < maxSegment {
		return nil
	}
	if s.file != nil {
		if err := s.file.Close(); err != nil {
			return err
		}
		s.file = nil
	}
	n := s.number + 1
	f, err := s.store.fs.OpenReadWrite(s.path(n), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	s.file, s.number, s.length = f, n, 0
	return publish.SyncDir(s.store.fs, filepath.Join(s.store.dir, "vectors"))
}

// append writes a batch's record and returns the offset of its first vector.
// The bytes count only once the index says so.
func (s *segments) append(b Batch) (int64, error) {
	s.buf = append(s.buf[:0], magic...)
	s.buf = append(s.buf, b.ID[:]...)
	s.buf = binary.LittleEndian.AppendUint32(s.buf, uint32(len(b.Keys)))
	s.buf = binary.LittleEndian.AppendUint32(s.buf, uint32(b.Dim))
	vectors := bytesOf(b.Vectors)
	sum := crc32.Update(crc32.Checksum(s.buf, castagnoli), castagnoli, vectors)
	s.buf = binary.LittleEndian.AppendUint32(s.buf, sum)
	s.buf = append(s.buf, vectors...)
	if _, err := s.file.WriteAt(s.buf, s.length); err != nil {
		return 0, err
	}
	first := s.length + int64(recordHeader)
	s.length += int64(len(s.buf))
	return first, nil
}

// readAt fills p from a segment.
func (s *segments) readAt(n uint32, p []byte, offset int64) error {
	s.mu.Lock()
	f := s.readers[n]
	if f == nil {
		var err error
		if f, err = s.store.fs.Open(s.path(n)); err != nil {
			s.mu.Unlock()
			return err
		}
		s.readers[n] = f
	}
	s.mu.Unlock()
	_, err := f.ReadAt(p, offset)
	return err
}

func (s *segments) close() error {
	if s == nil {
		return nil
	}
	var err error
	if s.file != nil {
		err = s.file.Close()
	}
	for _, f := range s.readers {
		err = errors.Join(err, f.Close())
	}
	return err
}

// bytesOf is the memory of a vector slice as it stands in a segment. Every
// platform that localembed is built for is little-endian.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
