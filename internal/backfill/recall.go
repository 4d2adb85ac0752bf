package backfill

import (
	"context"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
)

// recall gives the store what published dead letters say of texts that no device could
// embed, where it has lost that: they are not tried again. It comes before readBack, which
// deletes a damaged shard with its dead letters, and makes a vector of a shard win over a dead letter.
func (r *run) recall(ctx context.Context) error {
	return unembedded(ctx, r.Options, r.fs, r.store, func(failures map[key.Key]checkpoint.Failure) error {
		r.Log.Info("texts that no device could embed are known from dead letters; --retry-failed tries them again", "texts", len(failures))
		return r.store.PutFailures(failures)
	})
}

// unembedded gives do, file by file, what the dead letters of the recipe in OUT say of texts
// that no device could embed and of which the store, which may be nil, knows nothing. A letter holds
// the first 64 KiB of its text: the key of a longer one cannot be told, and it is tried again.
func unembedded(ctx context.Context, o Options, fs vfs.FS, store *checkpoint.Store, do func(map[key.Key]checkpoint.Failure) error) error {
	hasher := key.NewHasher(o.Recipe)
	return unknown(ctx, o, fs, store, fs.PathJoin(o.Out, shard.FailuresDir), func(p shard.Part, _ shard.Info) error {
		letters, _, err := shard.ReadFailures(fs, p.Path)
		if fault.Is(err, fault.CorruptFile) {
			o.Log.Warn("damaged dead letters say nothing of what devices could not embed", "why", err.Error())
			return nil
		}
		if err != nil {
			return outError(o.Out, err)
		}
		failures := map[key.Key]checkpoint.Failure{}
		for _, l := range letters {
			if slices.Contains(deviceClasses, l.Class) && int64(len(l.Text)) == l.TextBytes {
				failures[hasher.Key(l.Text)] = checkpoint.Failure{Class: l.Class, Attempts: l.Attempts, Message: l.Message}
			}
		}
		if store != nil {
			if err := forgetKnown(store, failures); err != nil {
				return err
			}
		}
		if len(failures) == 0 {
			return nil
		}
		return do(failures)
	})
}

// forgetKnown drops the texts that the store remembers, or has a vector of: these were tried
// again since.
func forgetKnown(store *checkpoint.Store, failures map[key.Key]checkpoint.Failure) error {
	keys := slices.Collect(maps.Keys(failures))
	entries := make([]checkpoint.Entry, len(keys))
	if err := store.Lookup(keys, entries, nil); err != nil {
		return err
	}
	for i, k := range keys {
		_, known, err := store.Failure(k)
		if err != nil {
			return err
		}
		if known || entries[i].Found {
			delete(failures, k)
		}
	}
	return nil
}
