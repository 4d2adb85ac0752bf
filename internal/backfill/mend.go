package backfill

import (
	"context"

	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
)

// mend looks at every stored vector that the window would reuse, before it is planned.
// Those that are damaged are taken out of the store, and then out of a published shard
// that has them, or else they are computed again. Most windows reuse none, so that a
// fresh run reads nothing here.
func (r *run) mend(ctx context.Context, w *window) error {
	damaged, err := r.store.Damaged(w.entries)
	if err != nil || len(damaged) == 0 {
		return err
	}
	keys := make([]key.Key, len(damaged))
	lost := map[int]bool{}
	for i, d := range damaged {
		keys[i] = w.keys[d]
		lost[d] = true
	}
	if err := r.store.Forget(keys); err != nil {
		return err
	}
	err = unread(ctx, r.Options, r.fs, r.store, func(p shard.Part, info shard.Info) error {
		err := r.readShard(ctx, p.Path, info)
		if fault.Is(err, fault.CorruptFile) {
			r.Log.Warn("a damaged shard gives no vectors", "why", err.Error())
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	found := 0
	for d := range lost {
		w.entries[d].Found = false
	}
	if err := r.store.Lookup(w.keys, w.entries, func(i int) bool { return lost[i] }); err != nil {
		return err
	}
	for d := range lost {
		if w.entries[d].Found {
			found++
		}
	}
	r.Log.Warn("vectors in the store were damaged", "store", r.store.Dir(), "shard", shard.Name(w.Index),
		"documents", len(damaged), "taken_from_shards", found, "computed_again", len(damaged)-found)
	return nil
}
