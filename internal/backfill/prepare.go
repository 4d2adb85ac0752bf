package backfill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
)

// prepare plans windows in order, queues their batches and hands them to the
// publisher.
func (r *run) prepare(ctx context.Context, in <-chan *window, out chan<- *window) error {
	m := &r.count.stages[stagePrepare]
	for {
		w, ok := receive(ctx, in, m)
		if !ok {
			return context.Cause(ctx)
		}
		end := m.begin()
		err := r.prepareWindow(ctx, w)
		end()
		if err != nil {
			return err
		}
		text := w.Text
		w.Text = column.Arena{}
		r.texts <- text
		r.flight.add(w)
		r.queue.push(w.pending)
		if !send(ctx, out, w, m) {
			return context.Cause(ctx)
		}
	}
}

func (r *run) prepareWindow(ctx context.Context, w *window) (err error) {
	if err := r.checkInput(w); err != nil {
		return err
	}
	if w.old, err = shard.Footer(r.fs, shard.Path(r.fs, r.Out, w.Index)); err != nil {
		return err
	}
	if w.old.State == shard.Foreign {
		return fault.New(fault.Usage, "this file is in the way: localembed did not make it").In(shard.Path(r.fs, r.Out, w.Index)).
			Hinting("move it away, or give a new folder with --out")
	}
	remembered, err := r.planner.remember(w)
	if err != nil {
		return err
	}
	r.count.add(&r.count.gaveUp, remembered)
	why := r.compare(w)
	if why != "" {
		if err := r.planner.plan(ctx, w); err != nil {
			return err
		}
		// Some dead letters are known only now: the texts that are too long. They
		// are part of the digest.
		why = r.compare(w)
	}
	if len(w.pending) > 0 && !r.spaceChecked {
		r.spaceChecked = true
		if err := r.checkSpace(w); err != nil {
			return err
		}
	}
	w.done = why == "" && len(w.pending) == 0
	if !w.done && w.old.State != shard.Missing {
		r.Log.Info("shard is written again", "shard", shard.Name(w.Index), "why", why)
	}
	w.collectFailed()
	if len(w.pending) == 0 {
		close(w.committed)
	}
	return nil
}

// compare says why the window needs a new shard: "" where the one that is
// there is the same to the last row.
func (r *run) compare(w *window) string {
	dead := w.dead()
	w.shard = r.layout.Digest(w.digest, dead, w.Columns)
	switch {
	case w.old.State != shard.Good:
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", w.old.State, w.old.Why), ": ")
	case w.shard != w.old.Digest:
		return "its texts, ids, kept columns or failures changed"
	}
	// The dead letters of a shard carry its digest.
	letters, err := shard.Footer(r.fs, shard.FailuresPath(r.fs, r.Out, w.Index))
	switch {
	case err != nil:
		return err.Error()
	case len(dead) == 0 && letters.State != shard.Missing:
		return "it has no dead letters, and a file of them is there"
	case len(dead) > 0 && (letters.State != shard.Good || letters.Digest != w.shard):
		return "its dead letters are " + letters.State.String() + " or of another run"
	}
	return ""
}

// checkInput stops a run whose first window says that the wrong column is read.
func (r *run) checkInput(w *window) error {
	if w.Index > 0 || r.MaxFailed >= 100 {
		return nil
	}
	classes := map[string]int{}
	dead := w.dead()
	for _, d := range dead {
		classes[w.class[d]]++
	}
	if 2*len(dead) <= w.Len() {
		return nil
	}
	var counts []string
	for c, n := range classes {
		counts = append(counts, fmt.Sprintf("%d %s", n, c))
	}
	slices.Sort(counts)
	return fault.New(fault.TooManyFailures, "%d of the first %d texts cannot be embedded (%s)", len(dead), w.Len(), strings.Join(counts, ", ")).
		In(r.Corpus.Files()[w.File[dead[0]]].Path).AtRow(w.Row[dead[0]]).
		Hinting("is --text the right column? with --max-failed 100 the run goes on all the same")
}

// inFlight are the windows that compute something and are not published yet, at
// most windowsInFlight. A window's claims do not change once it is here.
type inFlight struct {
	mu      sync.Mutex
	windows []*window
}

func (f *inFlight) add(w *window) {
	f.mu.Lock()
	f.windows = append(f.windows, w)
	f.mu.Unlock()
}

// remove is called when every vector of the window is in the store.
func (f *inFlight) remove(w *window) {
	f.mu.Lock()
	f.windows = slices.DeleteFunc(f.windows, func(other *window) bool { return other == w })
	f.mu.Unlock()
}

func (f *inFlight) claims(k key.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.windows {
		if _, ok := w.claims[k]; ok {
			return true
		}
	}
	return false
}
