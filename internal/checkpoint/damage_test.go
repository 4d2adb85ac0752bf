package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/fault"
)

// What a segment has lost is named at opening, found when it is used, and can be
// committed again; nothing else is touched.
func TestLostSegmentsAreFoundAndReplaced(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"short":   func(path string) error { return os.Truncate(path, 60) },
		"changed": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)-1] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
		"foreign": func(path string) error { return os.WriteFile(path, make([]byte, 4096), 0o600) },
	} {
		for _, number := range []uint32{1, 2} { // 2 is the last, which would be appended to
			t.Run(name, func(t *testing.T) {
				smallSegments(t)
				dir := filepath.Join(t.TempDir(), "store")
				s := open(t, nil, dir)
				commit(t, s, batchOf(0, 20))
				commit(t, s, batchOf(20, 2))
				path := s.segments.path(number)
				closeStore(t, s)
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
				s = open(t, nil, dir)
				if got := strings.Contains(strings.Join(s.Short(), ""), path); got != (name == "missing" || name == "short") {
					t.Errorf("short segments: %q", s.Short())
				}
				keys := batchOf(0, 22).Keys
				entries := make([]Entry, len(keys))
				if err := s.Lookup(keys, entries, nil); err != nil {
					t.Fatal(err)
				}
				err := s.Vectors(entries, testDim, make([]float32, testDim*len(keys)))
				_ = wantClass(t, err, fault.StoreCorrupt)
				damaged, err := s.Damaged(entries)
				if err != nil || len(damaged) == 0 {
					t.Fatalf("damaged %v, %v", damaged, err)
				}
				inSegment := func(i int) bool { return entries[i].segment == number }
				if slices.ContainsFunc(damaged, func(i int) bool { return !inSegment(i) }) {
					t.Errorf("entries %v are of another segment", damaged)
				}
				found := 0
				if n, err := s.Verify(func(string, string) error { found++; return nil }); err != nil || n != 22 || found != len(damaged) {
					t.Errorf("verify looked at %d vectors and found %d of %d, %v", n, found, len(damaged), err)
				}
				for _, i := range damaged {
					if err := s.Forget(keys[i : i+1]); err != nil {
						t.Fatal(err)
					}
				}
				commit(t, s, batchOf(0, 22))
				hasAll(t, s, 0, 22)
				closeStore(t, s)
				s = open(t, nil, dir)
				hasAll(t, s, 0, 22)
				closeStore(t, s)
			})
		}
	}
}

// A store whose index is gone must not take its vectors for uncommitted ones and delete
// them.
func TestAMissingIndexIsCorrupt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	commit(t, s, batchOf(0, 3))
	segment := s.segments.path(1)
	closeStore(t, s)
	if err := os.RemoveAll(filepath.Join(dir, "index")); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{})
	_ = wantClass(t, err, fault.StoreCorrupt)
	if _, err := os.Stat(segment); err != nil {
		t.Errorf("the vectors are gone: %v", err)
	}
}

func TestSweepDeletesWhatNoVectorIsIn(t *testing.T) {
	smallSegments(t)
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, nil, dir)
	commit(t, s, batchOf(0, 20))
	commit(t, s, batchOf(20, 2))
	if err := s.Holds(digest(1)); err != nil {
		t.Fatal(err)
	}
	first, second := s.segments.path(1), s.segments.path(2)
	if err := s.Forget(batchOf(0, 20).Keys); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); err == nil {
		t.Error("the first segment is there")
	}
	if _, err := os.Stat(second); err != nil {
		t.Error(err)
	}
	if held, err := s.HasShard(digest(1)); held || err != nil {
		t.Errorf("the shard counts as held: %t, %v", held, err)
	}
	hasNone(t, s, 0, 20)
	hasAll(t, s, 20, 2)
	if err := s.Forget(batchOf(20, 2).Keys); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, batchOf(30, 4))
	closeStore(t, s)
	s = open(t, nil, dir)
	hasAll(t, s, 30, 4)
	hasNone(t, s, 0, 22)
	closeStore(t, s)
}
