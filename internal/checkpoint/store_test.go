package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
)

func TestCommittedVectorsComeBackBitExact(t *testing.T) {
	smallSegments(t)
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	if !s.Fresh() {
		t.Error("a new store is not fresh")
	}
	// 17 batches over several segments, in commits of one batch and of many.
	commit(t, s, batchOf(0, 1))
	var many []Batch
	for from := 1; from < 61; from += 4 {
		many = append(many, batchOf(from, 4))
	}
	commit(t, s, many...)
	commit(t, s, batchOf(61, 40)) // larger than a segment
	hasAll(t, s, 0, 101)
	hasNone(t, s, 101, 50)
	closeStore(t, s)

	segments, err := filepath.Glob(filepath.Join(dir, "vectors", "*.seg"))
	if err != nil || len(segments) < 5 {
		t.Fatalf("there are %d segments (%v), want at least 5", len(segments), err)
	}
	s = open(t, nil, dir)
	defer closeStore(t, s)
	if s.Fresh() {
		t.Error("a store that was there is fresh")
	}
	hasAll(t, s, 0, 101)
	commit(t, s, batchOf(101, 3))
	hasAll(t, s, 0, 104)

	// All at once, in an order of the reader's, as a shard asks for them.
	keys := batchOf(0, 101).Keys
	slices.Reverse(keys)
	entries := make([]Entry, len(keys))
	if err := s.Lookup(keys, entries, func(i int) bool { return i != 7 }); err != nil {
		t.Fatal(err)
	}
	if entries[7].Found {
		t.Error("a key that was not wanted was looked up")
	}
	entries[7] = entries[8]
	vectors := make([]float32, len(keys)*testDim)
	if err := s.Vectors(entries, testDim, vectors); err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		n := 100 - i
		if i == 7 {
			n = 100 - 8
		}
		if !slices.Equal(bits(vectors[i*testDim:(i+1)*testDim]), bits(vectorOf(n))) {
			t.Fatalf("vector %d differs", n)
		}
	}
}

// A vector never changes once it may have been published.
func TestTheFirstVectorStays(t *testing.T) {
	s := open(t, vfs.NewMem(), "/store")
	defer closeStore(t, s)
	other := func(from, n int) Batch {
		b := batchOf(from, n)
		for i := range b.Vectors {
			b.Vectors[i] = 9
		}
		return b
	}
	commit(t, s, batchOf(0, 4))
	before := s.segments.length
	commit(t, s, other(1, 2))
	if s.segments.length != before {
		t.Error("a batch whose vectors are all there was appended")
	}
	commit(t, s, other(2, 2), batchOf(4, 2)) // one to drop, one to keep
	b := other(3, 4)                         // 3 to 5 are there, 6 is new
	copy(b.Vectors[3*testDim:], vectorOf(6))
	commit(t, s, b)
	// The same key twice in one batch, and in two batches of one commit.
	b = batchOf(7, 1)
	b.Keys, b.NTokens, b.Truncated = append(b.Keys, keyOf(7)), append(b.NTokens, 1), append(b.Truncated, true)
	b.Vectors = append(b.Vectors, make([]float32, testDim)...)
	commit(t, s, b, other(7, 1))
	commit(t, s, batchOf(8, 2), other(9, 1))
	hasAll(t, s, 0, 10)
}

func TestABatchOfTheWrongSizeIsNotCommitted(t *testing.T) {
	s := open(t, vfs.NewMem(), "/store")
	defer closeStore(t, s)
	b := batchOf(2, 2)
	b.Vectors = b.Vectors[1:]
	if err := s.Commit([]Batch{batchOf(0, 2), b}); err == nil {
		t.Fatal("it was committed")
	}
	hasNone(t, s, 0, 4)
	commit(t, s, batchOf(0, 4))
	hasAll(t, s, 0, 4)
}

// What no commit acknowledged is cut off, even a whole record with a good checksum.
func TestUncommittedBytesAreCut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	commit(t, s, batchOf(0, 3))
	segment, length := s.segments.path(1), s.segments.length
	if _, err := s.segments.append(batchOf(3, 3)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	appendTo(t, segment, "and some garbage")
	// A segment that was begun when the process died.
	next := filepath.Join(dir, "vectors", "000002.seg")
	if err := os.WriteFile(next, []byte("LEB1"), 0o600); err != nil {
		t.Fatal(err)
	}

	s = open(t, nil, dir)
	defer func() { closeStore(t, s) }()
	if info, err := os.Stat(segment); err != nil || info.Size() != length {
		t.Fatalf("the segment has %d bytes (%v), want the %d that were committed", info.Size(), err, length)
	}
	if _, err := os.Stat(next); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the segment without a commit is still there (%v)", err)
	}
	hasAll(t, s, 0, 3)
	hasNone(t, s, 3, 3)
	commit(t, s, batchOf(10, 3))
	closeStore(t, s)
	s = open(t, nil, dir)
	hasAll(t, s, 0, 3)
	hasNone(t, s, 3, 3)
	hasAll(t, s, 10, 3)
}

func appendTo(t *testing.T, path, bytes string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(bytes)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAChangedByteIsCorrupt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	commit(t, s, batchOf(0, 3), batchOf(3, 3))
	segment := s.segments.path(1)
	closeStore(t, s)
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	b[recordHeader+testDim*4+2] ^= 1 // in the vector of text 1
	if err := os.WriteFile(segment, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, nil, dir)
	defer closeStore(t, s)
	entries := make([]Entry, 6)
	if err := s.Lookup(batchOf(0, 6).Keys, entries, nil); err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		err := s.Vectors(entries[i:i+1], testDim, make([]float32, testDim))
		if i != 1 && err != nil {
			t.Errorf("vector %d: %v", i, err)
		}
		if i == 1 {
			_ = wantClass(t, err, fault.StoreCorrupt)
		}
	}
	err = s.Vectors(entries[:1], testDim+1, make([]float32, testDim+1))
	_ = wantClass(t, err, fault.StoreCorrupt)
	err = s.Vectors(make([]Entry, 1), testDim, make([]float32, testDim))
	_ = wantClass(t, err, fault.StoreCorrupt)
	// Cut while it is open.
	if err := os.Truncate(segment, int64(recordHeader)+3); err != nil {
		t.Fatal(err)
	}
	err = s.Vectors(entries[:1], testDim, make([]float32, testDim))
	_ = wantClass(t, err, fault.StoreCorrupt)
}

// The index is Pebble's; whatever of it is damaged, the store says so, as read-only
// openings do.
func TestADamagedIndexIsCorrupt(t *testing.T) {
	for _, kind := range []string{"MANIFEST-*", "marker.manifest.*", "*.sst"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s := open(t, nil, dir)
			commit(t, s, batchOf(0, 3000))
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			files, err := filepath.Glob(filepath.Join(dir, "index", kind))
			if err != nil || len(files) == 0 {
				t.Fatalf("no %s in the index (%v)", kind, err)
			}
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				for i := range b {
					b[i] ^= 0x55
				}
				if err := os.WriteFile(f, b, 0o600); err != nil {
					t.Fatal(err)
				}
				if len(b) == 0 { // a marker says all in its name
					if err := os.Rename(f, strings.TrimSuffix(f, filepath.Ext(f))+".MANIFEST-999999"); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, readOnly := range []bool{true, false} {
				s, err := Open(dir, Options{ReadOnly: readOnly})
				if err == nil {
					err = s.Lookup(batchOf(0, 3000).Keys, make([]Entry, 3000), nil)
					_ = s.Close()
				}
				_ = wantClass(t, err, fault.StoreCorrupt)
			}
		})
	}
}

func TestPublishedWindowsAndHeldShards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	check := func(window, shard int, plan, held bool) {
		t.Helper()
		p, err := s.HasPlan(digest(window))
		if err != nil || p != plan {
			t.Errorf("window %d has a plan: %t (%v), want %t", window, p, err, plan)
		}
		h, err := s.HasShard(digest(shard))
		if err != nil || h != held {
			t.Errorf("shard %d is held: %t (%v), want %t", shard, h, err, held)
		}
	}
	for w := range 2 {
		if err := s.PutPlan(digest(w), Plan{Batches: [][]int32{{0, 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	check(0, 10, true, false)
	if err := s.Published(digest(0), digest(10)); err != nil {
		t.Fatal(err)
	}
	if err := s.Holds(digest(11)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		check(0, 10, false, true)
		check(1, 11, true, true)
		check(2, 12, false, false)
		closeStore(t, s)
		s = open(t, nil, dir)
	}
	closeStore(t, s)
}

func TestAnotherVersionIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	if err := s.write(func(b *pebble.Batch) error { return b.Set([]byte{tagVersion}, []byte("2"), nil) }); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	for _, readOnly := range []bool{true, false} {
		_, err := Open(dir, Options{ReadOnly: readOnly})
		if e := wantClass(t, err, fault.StoreVersion); !strings.Contains(e.Message, `"2"`) {
			t.Errorf("%q does not say which version", e.Message)
		}
	}
}

func TestReadOnlyOpening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrNotExist) {
		t.Fatalf("opening nothing gives %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("opening nothing made the folder (%v)", err)
	}
	s := open(t, nil, dir)
	commit(t, s, batchOf(0, 10))
	_, err := Open(dir, Options{ReadOnly: true})
	_ = wantClass(t, err, fault.StoreLocked)
	if _, err := s.segments.append(batchOf(10, 3)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)

	before := tree(t, dir)
	s, err = Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	hasAll(t, s, 0, 10)
	hasNone(t, s, 10, 3)
	if err := s.PutPlan(digest(1), Plan{}); err == nil {
		t.Error("a plan was put into a store that is open for reading")
	}
	closeStore(t, s)
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("reading changed the store:\n%v\n%v", before, after)
	}
}

// The store holds what texts say: nobody else may read it.
func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	commit(t, s, batchOf(0, 10))
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		// The locks and who holds them say nothing of texts.
		if name := filepath.Base(path); err == nil && name != "lock" && name != "LOCK" && name != "owner.json" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tree lists names and contents.
func tree(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files = append(files, path+": "+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
