package backfill

import "localembed/internal/checkpoint"

// commit writes results to the store: all that are ready with one sync. It goes on
// until the devices have ended, also in a run that is being stopped, so that
// nothing that was computed is lost.
func (r *run) commit(results <-chan result) error {
	m := &r.count.stages[stageCommit]
	for {
		end := m.wait()
		first, ok := <-results
		end()
		if !ok {
			return nil
		}
		ready := []result{first}
		for more := true; more && len(ready) < cap(results); {
			select {
			case next, ok := <-results:
				if more = ok; ok {
					ready = append(ready, next)
				}
			default:
				more = false
			}
		}
		end = m.begin()
		err := r.commitAll(ready)
		end()
		if err != nil {
			return err
		}
	}
}

func (r *run) commitAll(ready []result) error {
	batches := make([]checkpoint.Batch, len(ready))
	for i, done := range ready {
		b := checkpoint.Batch{Dim: r.Recipe.Dims, Keys: done.keys(), Vectors: done.vectors}
		w := done.window
		b.NTokens = make([]int32, len(done.docs))
		b.Truncated = make([]bool, len(done.docs))
		for j, d := range done.docs {
			b.NTokens[j] = w.length(d)
			b.Truncated[j] = w.tokens.Truncated[w.tokenOf[d]]
		}
		b.ID = checkpoint.BatchID(b.Keys)
		batches[i] = b
	}
	if r.Unchanged != nil {
		if err := r.Unchanged(); err != nil {
			return err
		}
	}
	if err := r.store.Commit(batches); err != nil {
		return err
	}
	if err := r.careful.alive(r.store); err != nil {
		return err
	}
	for _, done := range ready {
		r.count.committed(done.work)
		r.spare.give(done.vectors)
		done.window.settle()
		r.queue.settle()
		done.release()
	}
	return nil
}
