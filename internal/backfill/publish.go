package backfill

import (
	"context"
	"runtime/debug"
	"slices"

	"localembed/internal/checkpoint"
	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// publish turns finished windows into shards, in window order, and removes the
// parts behind the last window.
func (r *run) publish(ctx context.Context, in <-chan *window) error {
	m := &r.count.stages[stagePublish]
	windows := 0
	for {
		w, ok := receive(ctx, in, m)
		if !ok {
			break
		}
		if _, ok := receive(ctx, w.committed, m); !ok && ctx.Err() != nil {
			break
		}
		end := m.begin()
		err := r.publishWindow(ctx, w)
		end()
		if err != nil {
			return err
		}
		windows++
		r.free <- w
		// What a shard was written with is garbage now. Collected at once, the
		// peak of memory does not depend on when the collector happens to run.
		debug.FreeOSMemory()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.finish(ctx, windows)
}

// publishWindow writes the window's shard, dead letters first, and only then
// records it, which ends the window's plan and claims.
func (r *run) publishWindow(ctx context.Context, w *window) error {
	if !w.done {
		if err := r.resolve(ctx, w); err != nil {
			return err
		}
	}
	docs := w.embedded()
	if err := r.unique.add(w.keys, docs); err != nil {
		return err
	}
	truncated := w.old.Truncated
	if !w.done {
		var err error
		if truncated, err = r.write(ctx, w, docs); err != nil {
			return err
		}
		r.count.written.Add(1)
	}
	if err := r.record(w); err != nil {
		return err
	}
	r.flight.remove(w)
	r.count.published(w, len(docs), truncated)
	return nil
}

// resolve finds the place of every vector, and makes dead letters of the documents whose
// text no device could embed since the window was planned, in whichever window.
func (r *run) resolve(ctx context.Context, w *window) error {
	embed := func(i int) bool { return w.class[i] == "" }
	if err := r.store.Lookup(w.keys, w.entries, embed); err != nil {
		return err
	}
	var dead []int32
	for i, c := range w.class {
		if c != "" || w.entries[i].Found {
			continue
		}
		f, ok, err := r.store.Failure(w.keys[i])
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.Internal, "the vector of this row is neither in the store nor planned").
				In(r.Corpus.Files()[w.File[i]].Path).AtRow(w.Row[i]).
				Hinting("run the same command again; if it says so again, please report it")
		}
		w.fail(int32(i), f)
		dead = append(dead, int32(i))
	}
	if len(dead) == 0 {
		return nil
	}
	w.shard = r.layout.Digest(w.digest, w.dead(), w.Columns)
	return w.addFailed(ctx, r.Corpus, dead)
}

// record notes in the store that the shard is there. Where it was there before, that
// is needed only after a crash between the two.
func (r *run) record(w *window) error {
	if w.done {
		known, err := r.store.HasShard(w.shard)
		if err != nil {
			return err
		}
		planned, err := r.store.HasPlan(w.digest)
		if err != nil || known && !planned {
			return err
		}
	}
	return r.store.Published(w.digest, w.shard)
}

// write publishes the window's dead letters and its shard, and counts the
// truncated texts in it.
func (r *run) write(ctx context.Context, w *window, docs []int32) (truncated int64, err error) {
	for _, d := range docs {
		if w.entries[d].Truncated {
			truncated++
		}
	}
	rows := shard.Rows{
		Docs: docs, FileNames: r.names, File: w.File, Row: w.Row, Chunk: w.Chunk,
		Columns: w.Columns, Keys: w.keys, Truncated: truncated,
	}
	entries := make([]checkpoint.Entry, 0)
	rows.Fetch = func(docs []int32, vectors []float32, nTokens []int32, cut []bool) error {
		if ctx.Err() != nil {
			return context.Cause(ctx) // a large shard takes longer to write than a signal may take
		}
		entries = grow(entries, len(docs))
		for i, d := range docs {
			entries[i] = w.entries[d]
			nTokens[i], cut[i] = entries[i].NTokens, entries[i].Truncated
		}
		return r.store.Vectors(entries, r.Recipe.Dims, vectors)
	}
	if err := r.layout.WriteFailures(r.fs, r.Out, w.Index, w.shard, rows, w.failed); err != nil {
		return 0, outError(r.Out, err)
	}
	return truncated, outError(r.Out, r.layout.Write(r.fs, r.Out, w.Index, w.shard, rows))
}

// finish publishes the empty shard of an empty corpus and removes parts behind
// the last window: the corpus had more windows once.
func (r *run) finish(ctx context.Context, windows int) error {
	if windows == 0 {
		w := &window{}
		w.Columns = column.NewSet(r.Corpus.Columns())
		w.digest = w.identity(nil, r.Recipe)
		var err error
		if w.old, err = shard.Footer(r.fs, shard.Path(r.fs, r.Out, 0)); err != nil {
			return err
		}
		w.done = r.compare(w) == ""
		if err := r.publishWindow(ctx, w); err != nil {
			return err
		}
		windows = 1
	}
	surplus, err := r.surplus(windows)
	if err != nil {
		return err
	}
	if written := r.count.written.Load(); int64(len(surplus)) > written && !r.Yes {
		return fault.New(fault.Usage, "the corpus now ends at part %d, and %d parts behind it would be deleted while %d were written", windows-1, len(surplus), written).
			In(r.Out).Hinting("is the corpus complete? --yes deletes the surplus parts; a new --out with --store %s keeps them", StoreDir(r.Out, r.Store))
	}
	for _, index := range surplus {
		r.Log.Info("surplus part is deleted", "shard", shard.Name(index))
		if err := shard.Remove(r.fs, r.Out, index); err != nil {
			return outError(r.Out, err)
		}
	}
	return nil
}

// surplus lists the windows behind the last one that have a part or dead letters of ours.
func (r *run) surplus(windows int) ([]int, error) {
	var surplus []int
	for _, dir := range []string{r.Out, r.fs.PathJoin(r.Out, shard.FailuresDir)} {
		parts, err := r.ourParts(dir)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.Index >= windows {
				surplus = append(surplus, p.Index)
			}
		}
	}
	slices.Sort(surplus)
	return slices.Compact(surplus), nil
}
