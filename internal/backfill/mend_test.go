package backfill

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"localembed/internal/shard"
)

// damageStore changes bytes all over the segments of the store, from a place on.
func damageStore(t *testing.T, store string, from int) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(store, "vectors", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	for _, path := range segments {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < len(b); i += 200 {
			b[i] ^= 0x40
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A shard that is lost is written again from a store of which some vectors are damaged:
// those that other shards have come from them, the others are computed again.
func TestDamagedVectorsAreTakenFromShardsOrComputedAgain(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	all := j.run()
	want := j.sums()
	store := StoreDir(j.out, "")
	damageStore(t, store, 100)
	if err := os.Remove(filepath.Join(j.out, shard.Name(2))); err != nil {
		t.Fatal(err)
	}
	r := j.run()
	if r.VectorsComputed == 0 || r.VectorsComputed >= all.VectorsComputed/5 {
		t.Errorf("%d vectors were computed again of %d", r.VectorsComputed, all.VectorsComputed)
	}
	j.check(rows)
	if !maps.Equal(j.sums(), want) {
		t.Error("the shards differ")
	}

	// With all shards there, what the store has lost is nothing that has to be computed.
	damageStore(t, store, 190)
	j.closed = true
	again := newJob(t, folder)
	again.store, again.window, again.closed = store, 70, true
	if _, err := again.try(t.Context()); err == nil {
		t.Error("another output reused damaged vectors")
	}
	if r := j.run(); r.VectorsComputed != 0 {
		t.Errorf("%d vectors were computed", r.VectorsComputed)
	}
	if !maps.Equal(j.sums(), want) {
		t.Error("the shards differ")
	}
}

// Segments that are lost cost what only they held.
func TestLostSegmentsAreComputedAgain(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	want := j.sums()
	segments, err := filepath.Glob(filepath.Join(StoreDir(j.out, ""), "vectors", "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range segments {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []int{0, 4} {
		if err := os.Remove(filepath.Join(j.out, shard.Name(part))); err != nil {
			t.Fatal(err)
		}
	}
	j.run()
	j.check(rows)
	if !maps.Equal(j.sums(), want) {
		t.Error("the shards differ")
	}
}
