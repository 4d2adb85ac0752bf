package backfill

import (
	"context"
	"slices"

	"localembed/internal/checkpoint"
	"localembed/internal/key"
	"localembed/internal/sortpack"
)

// planner decides what a window has to compute. A run and `plan` share it; only
// a run makes plans durable.
type planner struct {
	store     *checkpoint.Store              // nil where there is none yet
	shelf     map[key.Key]bool               // keys that the store will have, and whether their text is cut; only in a plan
	recalled  map[key.Key]checkpoint.Failure // what the store will remember; only in a plan
	tokenizer Tokenizer
	limits    sortpack.Limits
	vocab     int // token ids that the model has; 0 where nobody knows
	dropLong  bool
	durable   bool
	retry     bool                                 // what no device could embed is tried again
	claimed   func(key.Key) bool                   // whether an earlier, unfinished window computes the key
	mend      func(context.Context, *window) error // takes what is damaged out of the window's entries; nil in a plan
}

// plan fills the window's entries, tokens, dead letters, plan and pending batches.
func (p *planner) plan(ctx context.Context, w *window) error {
	if err := p.lookUp(w); err != nil {
		return err
	}
	if p.mend != nil {
		if err := p.mend(ctx, w); err != nil {
			return err
		}
	}
	unfinished := w.unfinished()
	fresh := w.fresh()
	var todo []int32
	for _, docs := range unfinished {
		todo = append(todo, docs...)
	}
	todo = append(todo, fresh...)
	if err := p.encode(ctx, w, todo); err != nil {
		return err
	}
	fresh = w.living(fresh)
	if p.dropLong {
		fresh = w.dropLong(fresh)
	}
	lengths := make([]int32, len(fresh))
	for i, d := range fresh {
		lengths[i] = w.length(d)
		w.claims[w.keys[d]] = struct{}{}
	}
	batches := sortpack.Plan(lengths, p.limits)
	for _, b := range batches {
		docs := make([]int32, len(b.Docs))
		for i, j := range b.Docs {
			docs[i] = fresh[j]
		}
		w.plan.Batches = append(w.plan.Batches, docs)
		unfinished = append(unfinished, docs)
	}
	// A plan that is there already wins over new limits; only what it does not
	// cover is planned by them.
	if len(batches) > 0 && p.durable {
		w.plan.Limits = p.limits
		if err := p.store.PutPlan(w.digest, w.plan); err != nil {
			return err
		}
	}
	if err := p.pend(w, unfinished); err != nil {
		return err
	}
	w.left.Store(int32(len(w.pending)))
	return nil
}

// remember makes dead letters of the documents whose text no device could embed,
// by what the store says of it, unless they are tried again. It gives the number of
// such texts.
func (p *planner) remember(w *window) (texts int64, err error) {
	if p.retry {
		return 0, nil
	}
	some := len(p.recalled) > 0
	if !some && p.store != nil {
		if some, err = p.store.HasFailures(); err != nil {
			return 0, err
		}
	}
	if !some {
		return 0, nil
	}
	dead := map[key.Key]struct{}{}
	for i, k := range w.keys {
		if w.class[i] != "" {
			continue
		}
		f, ok := p.recalled[k]
		if !ok && p.store != nil {
			if f, ok, err = p.store.Failure(k); err != nil {
				return 0, err
			}
		}
		if ok {
			w.fail(int32(i), f)
			dead[k] = struct{}{}
		}
	}
	return int64(len(dead)), nil
}

// pend queues batches as they are to run: those that were split in an earlier run
// as their parts, without parts that are done with.
func (p *planner) pend(w *window, batches [][]int32) error {
	some := false
	if p.store != nil && len(batches) > 0 {
		var err error
		if some, err = p.store.HasSplits(); err != nil {
			return err
		}
	}
	var add func(b work) error
	add = func(b work) error {
		if some && len(b.docs) > 1 {
			parted, err := p.store.HasSplit(b.id())
			if err != nil {
				return err
			}
			if parted {
				for _, half := range b.halves() {
					if err := add(half); err != nil {
						return err
					}
				}
				return nil
			}
		}
		alive := slices.DeleteFunc(slices.Clone(b.docs), func(d int32) bool { return w.class[d] != "" })
		if len(alive) < len(b.docs) {
			return add(w.work(alive)) // which may have been split as it is
		}
		if slices.ContainsFunc(b.docs, func(d int32) bool { return !w.entries[d].Found }) {
			w.pending = append(w.pending, b)
		}
		return nil
	}
	for _, docs := range batches {
		if err := add(w.work(docs)); err != nil {
			return err
		}
	}
	return nil
}

// lookUp asks who has or computes each key. Claims are asked before the store: an earlier
// window gives up its claims only after its vectors are in the store, so that no
// key can slip between the two questions.
func (p *planner) lookUp(w *window) (err error) {
	for i, k := range w.keys {
		w.elsewhere[i] = p.claimed(k)
	}
	for i, k := range w.keys {
		if cut, ok := p.shelf[k]; ok {
			w.entries[i] = checkpoint.Entry{Found: true, Truncated: cut}
		}
	}
	if p.store == nil {
		return nil
	}
	wanted := func(i int) bool { return w.class[i] == "" && !w.elsewhere[i] }
	if err := p.store.Lookup(w.keys, w.entries, wanted); err != nil {
		return err
	}
	w.plan, _, err = p.store.Plan(w.digest, w.Len())
	return err
}

// unfinished lists the batches of an existing plan that are not in the store,
// and claims every key of the plan.
func (w *window) unfinished() [][]int32 {
	var batches [][]int32
	for _, docs := range w.plan.Batches {
		stored := true
		for _, d := range docs {
			w.claims[w.keys[d]] = struct{}{}
			stored = stored && w.entries[d].Found
		}
		if !stored {
			batches = append(batches, docs)
		}
	}
	return batches
}

// fresh lists the first document of each key that nobody has and nobody computes.
func (w *window) fresh() []int32 {
	seen := make(map[key.Key]struct{})
	var docs []int32
	for i, k := range w.keys {
		if w.class[i] != "" || w.elsewhere[i] || w.entries[i].Found {
			continue
		}
		if _, ok := w.claims[k]; ok {
			continue
		}
		if _, ok := seen[k]; !ok {
			seen[k] = struct{}{}
			docs = append(docs, int32(i))
		}
	}
	return docs
}

// dropLong makes every document whose text is over the token limit a dead
// letter, and returns the fresh documents that are left.
func (w *window) dropLong(fresh []int32) []int32 {
	long := map[key.Key]struct{}{}
	for d, i := range w.tokenOf {
		if i >= 0 && w.tokens.Truncated[i] {
			long[w.keys[d]] = struct{}{}
		}
	}
	for d, k := range w.keys {
		_, cut := long[k]
		if w.class[d] == "" && (cut || w.entries[d].Found && w.entries[d].Truncated) {
			w.class[d] = tooLong
		}
	}
	return w.living(fresh)
}

// living are the documents that are no dead letters.
func (w *window) living(docs []int32) []int32 {
	return slices.DeleteFunc(docs, func(d int32) bool { return w.class[d] != "" })
}

// ids are the token ids of a tokenized document.
func (w *window) ids(doc int32) []uint32 { return w.tokens.At(int(w.tokenOf[doc])) }

func (w *window) length(doc int32) int32 { return int32(len(w.ids(doc))) }

// work makes a batch for a device from documents of the window.
func (w *window) work(docs []int32) work {
	b := work{window: w, docs: docs}
	for _, d := range docs {
		n := int(w.length(d))
		b.real += n
		b.longest = max(b.longest, n)
	}
	return b
}
