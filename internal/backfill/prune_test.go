package backfill

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// prune prunes the job's store.
func (j *job) prune() *Pruned {
	j.t.Helper()
	job, err := ReadJob(j.vfs(), j.out)
	if err != nil {
		j.t.Fatal(err)
	}
	p, err := Prune(context.Background(), j.fs, j.out, j.store, job)
	if err != nil {
		j.t.Fatalf("prune: %v", err)
	}
	return p
}

// After a prune the shards are the checkpoint: no segment is left, and a run computes
// nothing, also where a shard has to be written again.
func TestPruneLeavesTheShardsAsTheCheckpoint(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	want := j.sums()
	if p := j.prune(); p.Shards != 6 || p.Freed == 0 || p.Kept != 0 {
		t.Errorf("pruned %+v", p)
	}
	if segments, err := filepath.Glob(filepath.Join(StoreDir(j.out, ""), "vectors", "*")); err != nil || len(segments) > 0 {
		t.Errorf("segments %v, %v", segments, err)
	}
	j.closed = true
	if r := j.run(); r.VectorsComputed != 0 || !maps.Equal(j.sums(), want) {
		t.Errorf("%d vectors were computed", r.VectorsComputed)
	}
	j.check(rows)
}

// Nothing is given up that a shard cannot give back.
func TestPruneStopsAtADamagedShard(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	path := filepath.Join(j.out, shard.Name(0))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[1000] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	job, err := ReadJob(vfs.Default, j.out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prune(context.Background(), nil, j.out, "", job); !fault.Is(err, fault.CorruptFile) {
		t.Fatalf("error is %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	j.closed = true
	j.run()
	j.check(rows)
}

// A shared store of which an unfinished job has windows planned is left alone, and so is
// one that is in use.
func TestPruneRefusesAStoreThatOthersNeed(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.store = filepath.Join(t.TempDir(), "store")
	j.run()
	job, err := ReadJob(vfs.Default, j.out)
	if err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.Open(j.store, checkpoint.Options{Owner: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prune(context.Background(), nil, j.out, j.store, job); !fault.Is(err, fault.StoreLocked) {
		t.Errorf("error is %v", err)
	}
	if err := s.PutPlan([32]byte{1}, checkpoint.Plan{Batches: [][]int32{{1}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Prune(context.Background(), nil, j.out, j.store, job); !fault.Is(err, fault.Usage) {
		t.Errorf("error is %v", err)
	}
}

// The machine dies at every operation of a prune, and loses an arbitrary part of what was
// not synced.
func TestThePruneDiesAtEveryOperation(t *testing.T) {
	corpus := threeWindows(t)
	operations(31, func(i int) bool {
		mem := vfs.NewCrashableMem()
		j := inMemory(t, corpus, mem)
		j.run()
		want := j.sums()
		job, err := ReadJob(mem, j.out)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(i), 6))
		var seen atomic.Int64
		var clone atomic.Pointer[vfs.MemFS]
		dying := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if seen.Add(1) == int64(i) {
				clone.Store(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random}))
			}
			return nil
		}))
		if _, err := Prune(context.Background(), dying, j.out, "", job); err != nil {
			t.Fatal(err)
		}
		if clone.Load() == nil {
			return false
		}
		again := inMemory(t, corpus, clone.Load())
		again.closed = true
		if r := again.run(); r.VectorsComputed != 0 || !maps.Equal(again.sums(), want) {
			t.Errorf("operation %d: %d vectors were computed, or the shards differ", i, r.VectorsComputed)
		}
		return true
	})
}

// A segment that holds one vector more than the shards do stays whole: of an unfinished job
// nothing is lost that would have to be computed again, whatever is freed.
func TestPruneOfAnUnfinishedJob(t *testing.T) {
	folder, rows := fiveWindows(t)
	want, all := undisturbed(t, folder, func(j *job) { j.devices = 1 })
	j := newJob(t, folder)
	j.devices = 1
	batches := 0
	ctx, stop := context.WithCancelCause(context.Background())
	j.before = func([]int64, int, int, []int32) error {
		if parts, _ := filepath.Glob(filepath.Join(j.out, "part-*.parquet")); len(parts) > 0 {
			if batches++; batches == 3 { // of a window that is not published
				stop(fault.New(fault.Interrupted, "stopped by the test"))
			}
		}
		return nil
	}
	r, err := j.try(ctx)
	if !fault.Is(err, fault.Interrupted) || r.VectorsComputed == all {
		t.Fatalf("%d vectors, %v", r.VectorsComputed, err)
	}
	if p := j.prune(); p.Shards == 0 || p.Freed != 0 || p.Kept == 0 {
		t.Errorf("pruned %+v", p)
	}
	j.before = nil
	last := j.run()
	if last.VectorsComputed+r.VectorsComputed != all {
		t.Errorf("%d vectors were computed before and %d after a prune, want %d", r.VectorsComputed, last.VectorsComputed, all)
	}
	j.check(rows)
	if !maps.Equal(j.sums(), want) {
		t.Error("the shards differ")
	}
}
