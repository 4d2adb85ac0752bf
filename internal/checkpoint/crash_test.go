package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/sortpack"
)

// A machine that dies keeps what was synced and an arbitrary part of what was not.
// Whatever part that is, what was acknowledged is there, and a batch that was not is
// there whole or not at all.
func TestACrashLosesNothingThatWasAcknowledged(t *testing.T) {
	smallSegments(t)
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			mem := vfs.NewCrashableMem()
			acknowledged, next := []int{}, 0 // first texts of batches
			const size = 3
			plans := 0
			for range 4 {
				s := open(t, mem, "/job/store")
				var safe atomic.Int64 // batches acknowledged before the clone was begun
				var clone *vfs.MemFS
				began := next
				done := make(chan error, 1)
				stop := make(chan struct{})
				go func() {
					for n := began; ; {
						select {
						case <-stop:
							done <- nil
							return
						default:
						}
						var batches []Batch
						for range 1 + n%4 {
							batches = append(batches, batchOf(n*size, size))
							n++
						}
						if err := s.Commit(batches); err != nil {
							done <- err
							return
						}
						safe.Store(int64(n - began))
					}
				}()
				plans++
				if err := s.PutPlan(digest(plans), Plan{Limits: sortpack.CPU(), Batches: [][]int32{{int32(plans)}}}); err != nil {
					t.Fatal(err)
				}
				for target := 1 + random.Int64N(20); safe.Load() < target; {
					time.Sleep(50 * time.Microsecond)
				}
				sure := int(safe.Load())
				clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
				close(stop)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				attempted := int(safe.Load())
				closeStore(t, s)

				mem = clone
				s = open(t, mem, "/job/store")
				for n := began; n < began+attempted; n++ {
					found := has(t, s, n*size, size)
					whole := !slices.Contains(found, false)
					if !whole && slices.Contains(found, true) {
						t.Fatalf("batch %d is there in part: %v", n, found)
					}
					if n < began+sure && !whole {
						t.Fatalf("batch %d was acknowledged and is gone", n)
					}
					if whole {
						acknowledged = append(acknowledged, n)
					}
				}
				for _, n := range acknowledged {
					hasAll(t, s, n*size, size)
				}
				for p := 1; p <= plans; p++ {
					if got, ok, err := s.Plan(digest(p), 1000); err != nil || !ok || got.Batches[0][0] != int32(p) {
						t.Fatalf("plan %d: %v, %t, %v", p, got, ok, err)
					}
				}
				closeStore(t, s)
				next = began + attempted
			}
		})
	}
}
