package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
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

	mu      sync.Mutex
	readers map[uint32]vfs.File
}

func (s *segments) path(n uint32) string {
	return filepath.Join(s.store.dir, "vectors", fmt.Sprintf("%06d.seg", n))
}

// openSegments checks that every committed byte is there, cuts the written
// segment at its committed length and removes segments that were begun but never
// committed to.
func openSegments(store *Store, readOnly bool) (*segments, error) {
	s := &segments{store: store, readers: map[uint32]vfs.File{}}
	it, err := store.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tagSegment}, UpperBound: []byte{tagSegment + 1}})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		n, length, err := decodeSegment(it.Key(), it.Value())
		if err != nil {
			return nil, errors.Join(store.corrupt("%v", err), it.Close())
		}
		info, err := store.fs.Stat(s.path(n))
		if err != nil || info.Size() < length {
			return nil, errors.Join(store.corrupt("%s is missing or shorter than the %d bytes that were committed", s.path(n), length), it.Close())
		}
		s.number, s.length = n, length
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || readOnly {
		return s, err
	}
	return s, s.removeUncommitted()
}

// removeUncommitted cuts bytes past the last commit and deletes later segments.
func (s *segments) removeUncommitted() error {
	fs := s.store.fs
	names, err := fs.List(filepath.Join(s.store.dir, "vectors"))
	if err != nil {
		return err
	}
	for _, name := range names {
		var n uint32
		if _, err := fmt.Sscanf(name, "%d.seg", &n); err != nil || !strings.HasSuffix(name, ".seg") || n <= s.number {
			continue
		}
		if err := publish.Remove(fs, s.path(n)); err != nil {
			return err
		}
	}
	if s.number == 0 {
		return nil
	}
	if s.file, err = fs.OpenReadWrite(s.path(s.number), vfs.WriteCategoryUnspecified); err != nil {
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
