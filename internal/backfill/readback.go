package backfill

import (
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// readBack gives the store every vector that a published shard holds and the store
// does not know of: the store is new, was lost or pruned, or the shards come from
// another machine. It happens before the first window is planned, since a
// window may replace a shard that holds vectors of a later one.
func (r *run) readBack(ctx context.Context) error {
	return unread(ctx, r.Options, r.fs, r.store, func(p shard.Part, info shard.Info) error {
		r.Log.Info("vectors are read back into the store", "shard", shard.Name(p.Index), "rows", info.Rows)
		err := r.readShard(ctx, p.Path, info)
		if fault.Is(err, fault.CorruptFile) {
			r.Log.Warn("a damaged shard is made again", "shard", shard.Name(p.Index), "why", err.Error())
			return outError(r.Out, shard.Remove(r.fs, r.Out, p.Index))
		}
		return err
	})
}

// unread gives every shard of the recipe in OUT to do whose vectors the store,
// which may be nil, does not hold.
func unread(ctx context.Context, o Options, fs vfs.FS, store *checkpoint.Store, do func(shard.Part, shard.Info) error) error {
	return unknown(ctx, o, fs, store, o.Out, do)
}

// unknown gives every part of the recipe in a folder of OUT to do of whose shard the store,
// which may be nil, does not know.
func unknown(ctx context.Context, o Options, fs vfs.FS, store *checkpoint.Store, dir string, do func(shard.Part, shard.Info) error) error {
	parts, err := shard.List(fs, dir)
	if err != nil {
		return outError(o.Out, err)
	}
	recipe := o.Recipe.Digest()
	for _, p := range parts {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := shard.Footer(fs, p.Path)
		if err != nil {
			return outError(o.Out, err)
		}
		if info.State != shard.Good || info.Meta.Recipe.Digest() != recipe {
			continue
		}
		if store != nil {
			known, err := store.HasShard(info.Digest)
			if err != nil {
				return err
			}
			if known {
				continue
			}
		}
		if err := do(p, info); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) readShard(ctx context.Context, path string, info shard.Info) error {
	err := shard.Read(r.fs, path, func(b shard.Batch) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
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
