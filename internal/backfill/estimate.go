package backfill

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
	"localembed/internal/sortpack"
)

// Estimate says what a run would do. Fields have the report's names where they
// mean the same.
type Estimate struct {
	RowsIn           int64            `json:"rows_in"`
	DocumentsIn      int64            `json:"documents_in"`
	RowsEmbedded     int64            `json:"rows_embedded"`
	RowsDeadLettered map[string]int64 `json:"rows_dead_lettered"`
	UniqueTexts      int64            `json:"unique_texts"`
	Duplicates       int64            `json:"duplicates"` // embedded documents whose text came before
	TruncatedRows    int64            `json:"truncated_rows"`
	FilesSkipped     int64            `json:"files_skipped"`
	SkippedFiles     []SkippedFile    `json:"skipped_files"`
	Done             int64            `json:"done"` // documents whose vector is there already

	VectorsComputed int64   `json:"vectors_computed"`
	VectorsReused   int64   `json:"vectors_reused"`
	Tokens          int64   `json:"tokens"`
	PaddedTokens    int64   `json:"padded_tokens"`
	PaddingWaste    float64 `json:"padding_waste"`
	UnsortedWaste   float64 `json:"unsorted_waste"` // of batches of 64 in corpus order
	Batches         int64   `json:"batches"`
	Shards          int64   `json:"shards"`
	DiskBytes       int64   `json:"disk_bytes"` // store and shards together, at most
	BindingLimit    string  `json:"binding_limit"`

	Exact      bool            `json:"exact"`
	Sampled    int64           `json:"sampled"`     // documents that were looked at closely
	TokenError float64         `json:"token_error"` // relative, 95 %; 0 when exact
	Limits     sortpack.Limits `json:"limits"`
}

// exactRows is the number of corpus rows up to which a plan is exact unless asked: they
// are tokenized in seconds. It is a variable so that tests can sample.
var exactRows int64 = 200_000

// unsortedBatch is the batch size of the comparison with unsorted batches.
const unsortedBatch = 64

// estimator goes through the corpus as a run does, and counts instead of computing.
type estimator struct {
	Options
	Estimate
	fs       vfs.FS
	layout   *shard.Layout
	planner  planner
	broken   map[int]bool     // shards that a run would delete
	sample   uint64           // one key in so many is looked at
	seen     map[short]text   // by key, the texts so far
	binding  map[string]int64 // documents by the limit that ends their batches
	squares  float64          // of the lengths of sampled texts
	carried  int64            // bytes of ids and kept columns
	unsorted struct{ longest, items, real, padded int64 }
}

// text is what a plan remembers of a distinct text.
type text struct {
	cut  bool // it is over the token limit
	done bool // its vector is there already
}

// Plan reads the corpus and says what Run with the same options would compute.
// It opens no device and writes nothing. Up to 200 000 rows, or with exact, every
// number is what Run reports; otherwise tokens and duplicates come from a
// sample of the texts, chosen by content key, with all documents of a chosen text in it.
func Plan(ctx context.Context, o Options, exact bool) (*Estimate, error) {
	e := &estimator{Options: o, fs: o.FS, broken: map[int]bool{}, sample: 1, seen: map[short]text{}, binding: map[string]int64{}}
	if e.fs == nil {
		e.fs = vfs.Default
	}
	if err := checkOut(e.fs, o.Out, o.Job, true); err != nil {
		return nil, err
	}
	var err error
	if e.layout, err = shard.NewLayout(o.Corpus.Columns(), o.Corpus.HasID(), o.Corpus.Chunked(), o.Meta); err != nil {
		return nil, err
	}
	store, err := checkpoint.Open(StoreDir(o.Out, o.Store), checkpoint.Options{FS: o.FS, ReadOnly: true})
	if err != nil && !errors.Is(err, checkpoint.ErrNotExist) {
		return nil, err
	}
	if store != nil {
		defer func() { _ = store.Close() }()
	}
	if rows := o.Corpus.Rows(); !exact && rows > exactRows {
		e.sample = uint64((rows + exactRows - 1) / exactRows)
	}
	shelf, err := e.readable(ctx, store)
	if err != nil {
		return nil, err
	}
	recalled, err := e.recallable(ctx, store, shelf)
	if err != nil {
		return nil, err
	}
	e.planner = planner{store: store, shelf: shelf, recalled: recalled, tokenizer: o.Tokenizer, limits: o.Limits, vocab: o.VocabSize, dropLong: o.DropLong, retry: o.RetryFailed, claimed: e.counted}
	e.RowsDeadLettered = map[string]int64{}
	w := &window{}
	for {
		err := w.fill(ctx, o.Corpus, o.Recipe)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = e.add(ctx, w)
		}
		if err != nil {
			return nil, err
		}
	}
	e.finish()
	return &e.Estimate, nil
}

// readable lists the keys that a run would read back from published shards into
// the store before it plans, and whether their text is cut. Of a damaged shard these are
// the rows before the damage, for a run too.
func (e *estimator) readable(ctx context.Context, store *checkpoint.Store) (map[key.Key]bool, error) {
	shelf := map[key.Key]bool{}
	err := unread(ctx, e.Options, e.fs, store, func(p shard.Part, _ shard.Info) error {
		err := shard.Read(e.fs, p.Path, func(b shard.Batch) error {
			for i, k := range b.Keys {
				shelf[k] = b.Truncated[i]
			}
			return context.Cause(ctx)
		})
		if fault.Is(err, fault.CorruptFile) {
			e.Log.Warn("a damaged shard will be made again", "shard", shard.Name(p.Index), "why", err.Error())
			e.broken[p.Index] = true
			return nil
		}
		return err
	})
	return shelf, err
}

// recallable lists what a run would recall from dead letters before it plans.
func (e *estimator) recallable(ctx context.Context, store *checkpoint.Store, shelf map[key.Key]bool) (map[key.Key]checkpoint.Failure, error) {
	all := map[key.Key]checkpoint.Failure{}
	err := unembedded(ctx, e.Options, e.fs, store, func(failures map[key.Key]checkpoint.Failure) error {
		maps.Copy(all, failures)
		return nil
	})
	maps.DeleteFunc(all, func(k key.Key, _ checkpoint.Failure) bool {
		_, embedded := shelf[k]
		return embedded
	})
	return all, err
}

// counted reports whether an earlier window has the key, which the run would then
// have computed or found.
func (e *estimator) counted(k key.Key) bool {
	_, ok := e.seen[short(k[:16])]
	return ok
}

// add counts one window.
func (e *estimator) add(ctx context.Context, w *window) error {
	e.RowsIn += w.Rows
	e.DocumentsIn += int64(w.Len())
	e.Shards++
	e.carried += w.Columns.Bytes()
	old, err := shard.Footer(e.fs, shard.Path(e.fs, e.Out, w.Index))
	if err != nil {
		return outError(e.Out, err)
	}
	if _, err := e.planner.remember(w); err != nil {
		return err
	}
	finished := old.State == shard.Good && !e.broken[w.Index] && old.Digest == e.layout.Digest(w.digest, w.dead(), w.Columns)
	for d, c := range w.class {
		if c != "" {
			e.RowsDeadLettered[c]++
		} else if binary.LittleEndian.Uint64(w.keys[d][16:])%e.sample != 0 {
			w.class[d] = notSampled
		}
	}
	// A finished window's vectors are all in the store or on the shelf.
	if finished {
		err = e.planner.lookUp(w)
	} else {
		err = e.planner.plan(ctx, w)
	}
	if err != nil {
		return err
	}
	for d, c := range w.class {
		switch c {
		case "":
			e.document(w, int32(d))
		case tooLong, notTokenized:
			e.RowsDeadLettered[c] += int64(e.sample)
		}
	}
	e.batches(w)
	return nil
}

// notSampled marks a document that a sample leaves out.
const notSampled = "not sampled"

// document counts a sampled document that gets a vector.
func (e *estimator) document(w *window, d int32) {
	n := int64(e.sample)
	e.Sampled++
	e.RowsEmbedded += n
	k := short(w.keys[d][:16])
	t, again := e.seen[k]
	if again {
		e.Duplicates += n
	} else {
		e.UniqueTexts += n
		t = text{cut: w.entries[d].Truncated, done: w.entries[d].Found}
		if i := w.tokenOf[d]; i >= 0 {
			t.cut = w.tokens.Truncated[i]
			e.compute(w.length(d))
		}
		e.seen[k] = t
	}
	if t.cut {
		e.TruncatedRows += n
	}
	if t.done {
		e.Done += n
	}
}

// compute counts a text that would be computed, and puts it into the batch of 64 in
// corpus order that a program without sorting would make.
func (e *estimator) compute(length int32) {
	n := int64(length)
	e.squares += float64(n) * float64(n)
	u := &e.unsorted
	u.longest, u.items, u.real = max(u.longest, n), u.items+1, u.real+n
	if u.items == unsortedBatch {
		u.padded += u.longest * u.items
		u.longest, u.items = 0, 0
	}
}

// batches counts the window's batches. In a sample each length stands for as
// many texts as the sample leaves out, which are planned together.
func (e *estimator) batches(w *window) {
	if e.sample == 1 {
		for _, b := range w.pending {
			e.batch(b.longest, len(b.docs), b.real)
		}
		return
	}
	var lengths []int32
	for _, b := range w.pending {
		for _, d := range b.docs {
			lengths = append(lengths, slices.Repeat([]int32{w.length(d)}, int(e.sample))...)
		}
	}
	for _, b := range sortpack.Plan(lengths, e.Options.Limits) {
		real := 0
		for _, d := range b.Docs {
			real += int(lengths[d])
		}
		e.batch(b.Longest, len(b.Docs), real)
	}
}

func (e *estimator) batch(longest, items, real int) {
	e.Batches++
	e.VectorsComputed += int64(items)
	e.Tokens += int64(real)
	e.PaddedTokens += int64(longest * items)
	e.binding[e.Options.Limits.Binding(longest)] += int64(items)
}

func (e *estimator) finish() {
	e.RowsDeadLettered = deadLetters(e.RowsDeadLettered)
	e.SkippedFiles = skippedFiles(e.Corpus)
	e.FilesSkipped = int64(len(e.SkippedFiles))
	e.Exact = e.sample == 1
	if !e.Exact {
		// These were scaled from the sample; the documents were counted.
		e.RowsEmbedded = e.DocumentsIn - e.RowsDeadLettered["total"]
		e.Duplicates = e.RowsEmbedded - e.UniqueTexts
	}
	e.Shards = max(1, e.Shards)
	e.VectorsReused = e.UniqueTexts - e.VectorsComputed
	e.PaddingWaste = waste(e.Tokens, e.PaddedTokens)
	u := &e.unsorted
	e.UnsortedWaste = waste(u.real, u.padded+u.longest*u.items)
	store, shards := diskBytes(e.VectorsComputed, e.RowsEmbedded, e.Recipe.Dims)
	e.DiskBytes = store + shards + e.carried
	if n := float64(e.VectorsComputed) / float64(e.sample); !e.Exact && n > 1 {
		mean := float64(u.real) / n
		e.TokenError = 1.96 * math.Sqrt((1-1/float64(e.sample))*e.squares/n/n) / mean
	}
	most := int64(0)
	for _, name := range []string{"batch-tokens", "batch-items", "batch-cells"} {
		if e.binding[name] > most {
			most, e.BindingLimit = e.binding[name], name
		}
	}
	e.Estimate.Limits = e.Options.Limits
}
