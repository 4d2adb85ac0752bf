// Package checkpoint is the store: content key → vector, on a local disk, across
// runs, corpora and recipes. It guarantees that
//
//   - a vector that Commit acknowledged is there after any crash, and that a
//     vector that Lookup finds is exactly the one that was committed (each is
//     checked against its CRC when it is read);
//   - a batch is committed whole or not at all;
//   - a plan that PutPlan acknowledged is found again, unchanged;
//   - one process uses the store at a time, and the second is told who;
//   - what a damaged segment has lost is found when it is used (Damaged), and
//     taken out of the index (Forget): it is never taken for a vector.
//
// # Layout
//
//	STORE/lock                 held while the store is open
//	STORE/owner.json           who holds it: process, host, since when
//	STORE/index/               Pebble
//	STORE/vectors/000001.seg   append-only segments of at most 1 GiB
//
// A segment is a sequence of batch records, little-endian:
//
//	"LEB1"  batch id [32]  count u32  dim u32  crc32c u32  count × dim float32
//
// where the CRC covers everything before it and the vectors after it. The batch
// id is the SHA-256 of the batch's content keys. Keys of the index:
//
//	'v'                      format version
//	's' segment u32 (BE)     committed length of the segment, u64
//	'k' content key [32]     place of the vector: segment u32, offset u64, dim u32,
//	                         n_tokens u32, truncated u8, crc32c of the vector u32
//	'd'                      processes that died in a row without a commit (see Deaths)
//	'f' content key [32]     a text that no device could embed (see Failure)
//	'x' batch id [32]        the batch is split
//	'p' window digest [32]   plan of an unpublished window (see Plan)
//	'w' shard digest [32]    the shard was published or read back: the store holds
//	                         every vector in it
//
// # Crash argument
//
// Commit appends records to the segment, syncs it, and then writes the index
// entries and the segment's new committed length in one synced Pebble batch. A
// crash before that batch leaves bytes past the committed length; opening cuts
// them. A crash after it leaves the vectors committed. There is no third state.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/publish"
)

// Version is the format version of the store. 1: the first.
const Version = 1

// Store is an open store. Its methods may be called by several goroutines.
type Store struct {
	fs       vfs.FS
	dir      string
	db       *pebble.DB
	lock     *Lock
	log      *latch
	segments *segments
	fresh    bool

	committing sync.Mutex
}

// Options say how a store is opened.
type Options struct {
	FS       vfs.FS // nil is the operating system's
	ReadOnly bool   // nothing is written; a store that is not there is an error
	Owner    string // what the owner is doing, for the message that a second user gets
}

// ErrNotExist is returned by Open with ReadOnly where there is no store.
var ErrNotExist = errors.New("there is no store")

// Open opens the store in dir and makes it where there is none. Bytes that no
// commit acknowledged are cut off.
func Open(dir string, o Options) (_ *Store, err error) {
	s := &Store{fs: o.FS, dir: dir, log: &latch{}}
	if s.fs == nil {
		s.fs = private{vfs.Default}
	}
	index := filepath.Join(dir, "index")
	if _, statErr := s.fs.Stat(index); statErr != nil {
		if o.ReadOnly {
			return nil, ErrNotExist
		}
		if err := publish.MkdirAll(s.fs, filepath.Join(dir, "vectors"), 0o700); err != nil {
			return nil, s.wrap(err)
		}
	}
	options := s.pebbleOptions(o.ReadOnly)
	if o.ReadOnly {
		// A reader leaves owner.json alone; Pebble's own lock keeps it and a writer apart.
		if options.Lock, err = pebble.LockDirectory(index, s.fs); err != nil {
			return nil, s.wrap(lockedError(s.fs, dir, err))
		}
		s.lock = &Lock{closer: options.Lock}
	} else if s.lock, err = Acquire(s.fs, dir, o.Owner); err != nil {
		return nil, s.wrap(err)
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	s.db, err = openIndex(index, options)
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return nil, ErrNotExist // its maker died before it was one
	case errors.Is(err, fs.ErrNotExist):
		return nil, s.corrupt("a file of its index is missing: %v", err)
	case err != nil:
		return nil, s.wrap(err)
	}
	if err = s.checkVersion(o.ReadOnly); err != nil {
		return nil, err
	}
	if s.segments, err = openSegments(s, o.ReadOnly); err != nil {
		return nil, s.wrap(err)
	}
	return s, nil
}

// openIndex opens Pebble, which panics where a folder cannot be synced.
func openIndex(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				panic(r)
			}
			db, err = nil, cause
		}
	}()
	return pebble.Open(dir, o)
}

// pebbleOptions keep the memory of the index small and fixed: 4 MiB of blocks
// and two memtables of 2 MiB, whatever the number of keys.
func (s *Store) pebbleOptions(readOnly bool) *pebble.Options {
	o := &pebble.Options{
		FS: s.fs, ReadOnly: readOnly, ErrorIfNotExists: readOnly, Logger: s.log,
		FormatMajorVersion: pebble.FormatValueSeparation,
		CacheSize:          4 << 20,
		MemTableSize:       2 << 20,
		MaxOpenFiles:       512,
	}
	// Most look-ups are for keys that are not there; a filter on each level
	// answers them without reading a block.
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

func (s *Store) checkVersion(readOnly bool) error {
	v, ok, err := s.get([]byte{tagVersion})
	if err != nil {
		return s.wrap(err)
	}
	if ok {
		if string(v) != strconv.Itoa(Version) {
			return fault.New(fault.StoreVersion, "the store has format version %q, this localembed reads version %d", v, Version).In(s.dir).
				Hinting("use the localembed that wrote it, or another --store: vectors that published shards hold are read back from them")
		}
		return nil
	}
	s.fresh = true
	if readOnly {
		return nil
	}
	return s.write(func(b *pebble.Batch) error {
		return b.Set([]byte{tagVersion}, []byte(strconv.Itoa(Version)), nil)
	})
}

// Fresh reports whether this opening made the store.
func (s *Store) Fresh() bool { return s.fresh }

// Short lists, as sentences, the segments that have lost committed bytes.
func (s *Store) Short() []string { return s.segments.short }

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// Close closes the store. Everything acknowledged is on disk already.
func (s *Store) Close() error {
	err := s.segments.close()
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
		s.db = nil
	}
	s.release()
	if err != nil {
		return s.wrap(err)
	}
	return nil
}

// release gives up what Open took when Open fails, and the lock at the end.
func (s *Store) release() {
	if s.db != nil {
		_ = s.db.Close()
	}
	if s.lock != nil {
		s.lock.Release()
	}
}

// get reads one value, copied.
func (s *Store) get(k []byte) ([]byte, bool, error) {
	v, closer, err := s.db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	out := append([]byte(nil), v...)
	return out, true, closer.Close()
}

// write commits one synced Pebble batch. Pebble reports a failed write or sync of
// its log through Logger.Fatalf only and may then acknowledge a commit that is
// not on disk, so the latch is looked at before anything is acknowledged.
func (s *Store) write(fill func(*pebble.Batch) error) error {
	if err := s.log.err(); err != nil {
		return s.wrap(err)
	}
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	if err := fill(b); err != nil {
		return s.wrap(err)
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return s.wrap(err)
	}
	if err := s.log.err(); err != nil {
		return s.wrap(err)
	}
	return nil
}

// wrap gives an error of the file system or of Pebble the store's class and path.
func (s *Store) wrap(err error) error {
	var e *fault.Error
	if errors.As(err, &e) {
		return err
	}
	if pebble.IsCorruptionError(err) {
		return s.corrupt("its index is damaged: %v", err)
	}
	e = fault.Of(err)
	if e.Class == fault.Internal {
		e = fault.New(fault.IOError, "the store could not be read or written: %v", err).Because(nil).
			Hinting("check the disk and its permissions, then run the same command again; what was committed stays")
	}
	if e.File == "" {
		e.File = s.dir
	}
	return e
}

func (s *Store) corrupt(format string, args ...any) error {
	return fault.New(fault.StoreCorrupt, "the store is damaged: %s", fmt.Sprintf(format, args...)).In(s.dir).
		Hinting("move the folder away and run the same command again: what published shards hold is read back from them, the rest is computed again")
}
