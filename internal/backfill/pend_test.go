package backfill

import (
	"slices"
	"testing"

	"localembed/internal/checkpoint"
	"localembed/internal/key"
)

// A batch of a plan comes back as the parts that it was split into, without texts that
// are dead, in whichever order the two happened.
func TestSplitBatchesComeBackInParts(t *testing.T) {
	store, err := checkpoint.Open(t.TempDir()+"/store", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const texts = 8
	w := &window{keys: make([]key.Key, texts), class: make([]string, texts), entries: make([]checkpoint.Entry, texts)}
	for i := range texts {
		w.keys[i] = key.Key{byte(i + 1)}
		w.tokenOf = append(w.tokenOf, int32(i))
		w.tokens.IDs = append(w.tokens.IDs, 7)
		w.tokens.Ends = append(w.tokens.Ends, int64(i+1))
	}
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	pending := func() (docs [][]int32) {
		t.Helper()
		w.pending = nil
		p := planner{store: store}
		if err := p.pend(w, [][]int32{all}); err != nil {
			t.Fatal(err)
		}
		for _, b := range w.pending {
			docs = append(docs, b.docs)
		}
		return docs
	}
	split := func(docs ...int32) {
		t.Helper()
		if err := store.PutSplit(w.work(docs).id()); err != nil {
			t.Fatal(err)
		}
	}
	want := func(docs ...[]int32) {
		t.Helper()
		if got := pending(); !slices.EqualFunc(got, docs, slices.Equal) {
			t.Errorf("got %v, want %v", got, docs)
		}
	}
	want(all)
	split(all...)
	want(all[:4], all[4:])
	w.class[1] = deviceFailed
	want([]int32{0, 2, 3}, all[4:])
	split(0, 2, 3) // as the run split it that knew of the dead text
	want([]int32{0}, []int32{2, 3}, all[4:])
	for i := 4; i < 8; i++ {
		w.entries[i].Found = true
	}
	want([]int32{0}, []int32{2, 3})
	w.class[0] = deviceFailed
	want([]int32{2, 3})
}
