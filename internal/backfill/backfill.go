// Package backfill is the pipeline: it takes a corpus through keys, tokens, plans,
// devices, store and shards, and reports what it did. It guarantees that
//
//   - shard N holds, in corpus order, every document of window N that could be
//     embedded, and the dead letters of window N all others;
//   - a window is planned once, in window order, and its plan is durable before
//     its first batch runs; whatever happens at run time, a resumed run repeats
//     the same batches, so that the shards come out with the same bytes;
//   - no committed batch is computed again;
//   - at most three windows are in memory, however large the corpus.
//
// # Flow
//
//	read     corpus → window → content keys → window digest        (one goroutine, keys on all cores)
//	prepare  done? → claims and store → tokens → durable plan      (one goroutine, tokens on all cores)
//	device   batch → vectors                                       (one goroutine and thread each)
//	commit   all vectors that are ready → store, one sync          (one goroutine)
//	publish  vectors of a finished window → shard, in window order (one goroutine)
//
// Stages hand windows on through channels, in one direction; a stage never waits
// for a later one except for a free window.
package backfill

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"localembed/internal/checkpoint"
	"localembed/internal/column"
	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/selftest"
	"localembed/internal/shard"
	"localembed/internal/sortpack"
	"localembed/internal/tokenize"
)

// windowsInFlight is how many windows are in memory at once: one that is read
// and planned, one that the devices work on, one that is published.
const windowsInFlight = 3

// Tokenizer turns texts into token ids; see tokenize.Tokenizer.
type Tokenizer interface {
	// Encode appends the ids of the given documents to out, in this order.
	Encode(ctx context.Context, texts *column.Arena, docs []int32, out *tokenize.Tokens) error
}

// Device is one inference session. It is used by one goroutine, which is locked
// to its thread.
type Device interface {
	Name() string
	// Run embeds items texts, each of length ids in ids (row by row), and writes
	// items vectors into out. lengths holds the real lengths, or is nil where every text
	// has exactly length tokens.
	Run(ids []int64, items, length int, lengths []int32, out []float32) error
	Close() error
}

// Options are everything a run needs. Fields without a comment are what their
// type says.
type Options struct {
	FS        vfs.FS // nil is the operating system's
	Out       string
	Store     string // "" is OUT/.localembed
	Job       Job    // what job.json records and compares
	Corpus    *corpus.Corpus
	Tokenizer Tokenizer
	PadID     int64 // token id that fills up the shorter texts of a padded batch
	VocabSize int   // token ids that the model has are below it; 0 where that is not known
	Recipe    key.Recipe
	Limits    sortpack.Limits
	DropLong  bool    // a text over the token limit is a dead letter instead of cut
	MaxFailed float64 // percent; 100 switches the check off
	// RetryFailed tries the texts again that no device could embed.
	RetryFailed bool
	Meta        shard.Meta
	Warnings    []string // what was said of the model; the report repeats it
	Yes         bool     // surplus parts may be deleted whatever their number

	// OpenDevices is called before the first batch, and not at all where nothing has to
	// be computed.
	OpenDevices func() ([]Device, error)

	// Unchanged is asked before vectors are committed: it returns an error where the
	// model's files are no longer those that Recipe was made from. nil asks nothing.
	Unchanged func() error

	// SelfTest is called with the first device before its first batch; an error ends the
	// run. nil tests nothing.
	SelfTest func(context.Context, Device) (selftest.Result, error)

	Log      *slog.Logger
	Progress func(Progress) // called every second, from a goroutine of its own
}

// run is one run of the pipeline.
type run struct {
	Options
	fs      vfs.FS
	store   *checkpoint.Store
	layout  *shard.Layout
	planner planner
	names   []string // of the corpus's files
	queue   queue
	flight  inFlight
	careful careful
	spare   buffers
	free    chan *window      // windows that can be filled
	texts   chan column.Arena // text arenas that can be filled
	count   counters
	unique  *distinct

	spaceChecked bool // used by the goroutine that prepares
	started      time.Time
}

// Run does the job, or what is left of it. The report is there also where the
// run was interrupted or failed, as far as it came.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	r := &run{Options: o, fs: o.FS, started: time.Now()}
	if r.fs == nil {
		r.fs = vfs.Default
	}
	for _, f := range o.Corpus.Files() {
		r.names = append(r.names, f.Name)
	}
	if r.layout, err = shard.NewLayout(o.Corpus.Columns(), o.Corpus.HasID(), o.Corpus.Chunked(), o.Meta); err != nil {
		return nil, err
	}
	lock, err := openOut(r.fs, o.Out, o.Job, o.Yes)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := writeJob(r.fs, o.Out, o.Job); err != nil {
		return nil, err
	}
	if r.store, err = checkpoint.Open(StoreDir(r.Out, r.Store), checkpoint.Options{FS: o.FS, Owner: "localembed run --out " + o.Out}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.store.Close()) }()
	for _, why := range r.store.Short() {
		r.Log.Warn("the store has lost vectors: they are taken from shards, or computed again", "why", why)
	}
	r.unique = newDistinct(StateDir(o.Out))
	defer r.unique.close()
	if err = r.recall(ctx); err == nil {
		err = r.readBack(ctx)
	}
	if err == nil {
		err = r.pipeline(ctx)
	}
	report, reportErr := r.report()
	return report, errors.Join(err, reportErr)
}

// pipeline starts every goroutine of the run and waits for them.
func (r *run) pipeline(ctx context.Context) error {
	r.free = make(chan *window, windowsInFlight)
	for range windowsInFlight {
		r.free <- &window{}
	}
	// A window's text is given back once it is tokenized, so two arenas serve
	// all windows: one that is filled, one that is tokenized. A window's bytes pass
	// the limit only by a text of its own.
	const arenas = 2
	r.texts = make(chan column.Arena, arenas)
	for range arenas {
		text := column.Reserve(max(int(r.Job.WindowBytes), corpus.MaxText))
		defer text.Release()
		r.texts <- text
	}
	r.planner = planner{store: r.store, tokenizer: r.Tokenizer, limits: r.Limits, vocab: r.VocabSize, dropLong: r.DropLong, durable: true, retry: r.RetryFailed, claimed: r.flight.claims, mend: r.mend}
	r.queue.init()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, ctx := errgroup.WithContext(ctx)
	start := func(f func(context.Context) error) {
		group.Go(func() error { return fault.Guard(func() error { return f(ctx) }) })
	}
	read := make(chan *window)
	planned := make(chan *window, windowsInFlight)
	results := make(chan result, 8)
	dead := make(chan struct{}) // closed when nobody takes results any more

	progressDone := make(chan struct{})
	stopProgress := make(chan struct{})
	go func() {
		defer close(progressDone)
		if err := fault.Guard(func() error { r.progress(stopProgress); return nil }); err != nil {
			cancel(err)
		}
	}()

	start(func(ctx context.Context) error { defer close(read); return r.read(ctx, read) })
	start(func(ctx context.Context) error {
		defer r.queue.close()
		defer close(planned)
		return r.prepare(ctx, read, planned)
	})
	start(func(ctx context.Context) error { defer close(results); return r.devices(ctx, results, dead) })
	start(func(context.Context) error { defer close(dead); return r.commit(results) })
	start(func(ctx context.Context) error { return r.publish(ctx, planned) })
	// A run that stops must not leave the devices waiting for work.
	stop := context.AfterFunc(ctx, r.queue.stop)
	err := group.Wait()
	stop()
	close(stopProgress)
	<-progressDone
	return err
}
