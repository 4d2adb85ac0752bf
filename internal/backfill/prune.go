package backfill

import (
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// Pruned says what Prune did.
type Pruned struct {
	Shards int   `json:"shards"`      // whose vectors the store gave up
	Freed  int64 `json:"freed_bytes"` // of vectors, in the store
	Kept   int64 `json:"store_bytes"` // of vectors that are left in it
}

// Prune takes out of the store what OUT's shards hold as well, and deletes the segments
// in which nothing else is: the shards are the checkpoint then. Each shard is read
// to its last page before the store gives up its vectors, which is durable before a segment goes, so
// that a vector is in one of the two at any moment. store is "" for the one inside OUT. In
// another one, which jobs may share, a job that is unfinished is a refusal: it may count on
// vectors that it has in common with OUT. files is the file system, nil for the operating system's.
func Prune(ctx context.Context, files vfs.FS, out, store string, job *Job) (p *Pruned, err error) {
	fs := files
	if fs == nil {
		fs = vfs.Default
	}
	doing := "localembed prune " + out
	lock, err := checkpoint.Acquire(fs, StateDir(out), doing)
	if err != nil {
		return nil, outError(out, err)
	}
	defer lock.Release()
	dir := StoreDir(out, store)
	if _, err := fs.Stat(dir); err != nil {
		return nil, fault.New(fault.NoSuchFile, "there is no store").In(dir).
			Hinting("was the job run with --store? then give it here too; else there is nothing to prune")
	}
	s, err := checkpoint.Open(dir, checkpoint.Options{FS: files, Owner: doing})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if store != "" {
		planned, err := s.Planned()
		if err != nil {
			return nil, err
		}
		if planned {
			return nil, fault.New(fault.Usage, "a job that is not finished uses this store").In(dir).
				Hinting("finish it first: prune would take vectors that it counts on")
		}
	}
	before, err := s.Size()
	if err != nil {
		return nil, err
	}
	p = &Pruned{}
	if p.Shards, err = forgetShards(ctx, fs, out, s, job); err != nil {
		return nil, err
	}
	if err := s.Sweep(ctx); err != nil {
		return nil, err
	}
	if p.Kept, err = s.Size(); err != nil {
		return nil, err
	}
	p.Freed = max(0, before-p.Kept)
	return p, nil
}

// forgetShards takes the vectors of every shard of the job out of the store's index.
func forgetShards(ctx context.Context, fs vfs.FS, out string, s *checkpoint.Store, job *Job) (shards int, err error) {
	parts, err := shard.List(fs, out)
	if err != nil {
		return 0, outError(out, err)
	}
	for _, part := range parts {
		info, err := shard.Footer(fs, part.Path)
		if err != nil {
			return shards, outError(out, err)
		}
		if info.State != shard.Good || info.Meta.Recipe.Digest() != job.Recipe.Digest() {
			continue
		}
		// The first reading proves that the shard can be read to its end.
		err = shard.Read(fs, part.Path, func(shard.Batch) error { return context.Cause(ctx) })
		if err == nil {
			err = shard.Read(fs, part.Path, func(b shard.Batch) error { return s.Forget(slices.Clone(b.Keys)) })
		}
		if err != nil {
			return shards, outError(out, err)
		}
		shards++
	}
	return shards, nil
}
