package backfill

import (
	"context"
	"errors"
	"slices"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// readBack gives the store every vector that a published shard holds and the store
// does not know of: the store is new, was lost or pruned, or the shards come from
// another machine. It happens before the first window is planned, since a
// window may replace a shard that holds vectors of a later one.
func (r *run) readBack(ctx context.Context) error {
	parts, err := r.ourParts()
	if err != nil {
		return err
	}
	recipe := r.Recipe.Digest()
	for _, p := range parts {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := shard.Footer(r.fs, p.Path)
		if err != nil {
			return outError(r.Out, err)
		}
		if info.State != shard.Good || info.Meta.Recipe.Digest() != recipe {
			continue
		}
		known, err := r.store.HasShard(info.Digest)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		r.Log.Info("vectors are read back into the store", "shard", shard.Name(p.Index), "rows", info.Rows)
		err = r.readShard(p.Path, info)
		var e *fault.Error
		if errors.As(err, &e) && e.Class == fault.CorruptFile {
			r.Log.Warn("a damaged shard is computed again", "shard", shard.Name(p.Index), "why", e.Error())
			if err := shard.Remove(r.fs, r.Out, p.Index); err != nil {
				return outError(r.Out, err)
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) readShard(path string, info shard.Info) error {
	err := shard.Read(r.fs, path, func(b shard.Batch) error {
		return r.store.Commit([]checkpoint.Batch{{
			ID: checkpoint.BatchID(b.Keys), Dim: info.Dim, Keys: slices.Clone(b.Keys),
			NTokens: b.NTokens, Truncated: b.Truncated, Vectors: b.Vectors,
		}})
	})
	if err != nil {
		return err
	}
	return r.store.Holds(info.Digest)
}
