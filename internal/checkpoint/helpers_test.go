package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/key"
)

const testDim = 5

// smallSegments makes segments so small that each holds one to three batches.
func smallSegments(t testing.TB) {
	old := maxSegment
	maxSegment = 300
	t.Cleanup(func() { maxSegment = old })
}

func keyOf(n int) (k key.Key) {
	// Neighbours are far apart, as the keys of texts are.
	binary.BigEndian.PutUint64(k[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(k[24:], uint64(n))
	return k
}

// vectorOf is the vector of keyOf(n), with values that a careless float path changes.
func vectorOf(n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	v := make([]float32, testDim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	v[n%testDim] = []float32{float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32}[n%3]
	return v
}

// batchOf is a batch of the texts from a number on.
func batchOf(from, n int) Batch {
	b := Batch{Dim: testDim}
	for i := from; i < from+n; i++ {
		b.Keys = append(b.Keys, keyOf(i))
		b.NTokens = append(b.NTokens, int32(i%256))
		b.Truncated = append(b.Truncated, i%3 == 0)
		b.Vectors = append(b.Vectors, vectorOf(i)...)
	}
	b.ID = BatchID(b.Keys)
	return b
}

func open(t testing.TB, fs vfs.FS, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{FS: fs, Owner: "a test"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func commit(t testing.TB, s *Store, batches ...Batch) {
	t.Helper()
	if err := s.Commit(batches); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// has reports which of the texts are in the store, each with the right vector.
func has(t testing.TB, s *Store, from, n int) []bool {
	t.Helper()
	keys := batchOf(from, n).Keys
	entries := make([]Entry, n)
	if err := s.Lookup(keys, entries, nil); err != nil {
		t.Fatalf("lookup: %v", err)
	}
	found := make([]bool, n)
	for i, e := range entries {
		if found[i] = e.Found; !e.Found {
			continue
		}
		got := make([]float32, testDim)
		if err := s.Vectors(entries[i:i+1], testDim, got); err != nil {
			t.Fatalf("vector %d: %v", from+i, err)
		}
		want := batchOf(from+i, 1)
		if !slices.Equal(bits(got), bits(want.Vectors)) || e.NTokens != want.NTokens[0] || e.Truncated != want.Truncated[0] {
			t.Fatalf("text %d came back as %v, %d tokens, truncated %t; want %v, %d, %t", from+i, got, e.NTokens, e.Truncated, want.Vectors, want.NTokens[0], want.Truncated[0])
		}
	}
	return found
}

// hasAll fails unless all of the texts are there.
func hasAll(t testing.TB, s *Store, from, n int) {
	t.Helper()
	for i, ok := range has(t, s, from, n) {
		if !ok {
			t.Fatalf("text %d of [%d, %d) is not in the store", from+i, from, from+n)
		}
	}
}

func hasNone(t testing.TB, s *Store, from, n int) {
	t.Helper()
	if slices.Contains(has(t, s, from, n), true) {
		t.Fatalf("a text of [%d, %d) is in the store", from, from+n)
	}
}

func bits(v []float32) (out []uint32) {
	for _, x := range v {
		out = append(out, math.Float32bits(x))
	}
	return out
}

// wantClass fails unless the error has the class and names the store.
func wantClass(t testing.TB, err error, class fault.Class) *fault.Error {
	t.Helper()
	e := fault.Of(err)
	if e == nil || e.Class != class {
		t.Fatalf("error is %v, want one of class %s", err, class)
	}
	if e.File == "" || e.Hint == "" {
		t.Errorf("error %q lacks its place %q or its hint %q", e.Error(), e.File, e.Hint)
	}
	return e
}

func digest(n int) (d [32]byte) {
	copy(d[:], fmt.Sprintf("digest %d", n))
	return d
}
