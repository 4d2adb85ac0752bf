package backfill

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"localembed/internal/checkpoint"
	"localembed/internal/column"
	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
	"localembed/internal/tokenize"
)

// window is a window of the corpus on its way to a shard. All slices have one
// element a document and are reused by later windows.
type window struct {
	corpus.Window
	keys      []key.Key
	digest    [32]byte
	class     []string           // dead letter class, "" for a document to embed
	entries   []checkpoint.Entry // what the store had when the window was prepared, completed at publishing
	elsewhere []bool             // an earlier, unfinished window computes the key
	tokenOf   []int32            // position in tokens, -1 where nothing was tokenized
	tokens    tokenize.Tokens
	claims    map[key.Key]struct{} // keys that this window computes
	plan      checkpoint.Plan
	pending   []work                       // batches of the plan that are not in the store
	failures  map[int32]checkpoint.Failure // why a device could not embed a document
	failed    []shard.Failed
	bad       column.Arena // the texts of failed

	old       shard.Info    // what the shard that is there says of itself
	done      bool          // that shard is the one this window gives
	shard     [32]byte      // digest of the shard that this window gives
	left      atomic.Int32  // batches neither committed nor given up
	underway  int64         // documents of committed batches; the counters' lock guards it
	committed chan struct{} // closed when left is 0
}

// settle says that a batch of the window is committed or given up.
func (w *window) settle() {
	if w.left.Add(-1) == 0 {
		close(w.committed)
	}
}

// work is a batch for a device.
type work struct {
	window  *window
	docs    []int32
	longest int
	real    int // tokens without padding

	attempts int // runs that failed
	killed   int // devices that were lost to it, or to a batch that it is a part of
}

// padded is the batch's size with padding, in tokens.
func (b work) padded() int { return b.longest * len(b.docs) }

// keys are the batch's content keys.
func (b work) keys() []key.Key {
	keys := make([]key.Key, len(b.docs))
	for i, d := range b.docs {
		keys[i] = b.window.keys[d]
	}
	return keys
}

// id is the batch's id: the hash of its content keys.
func (b work) id() [32]byte { return checkpoint.BatchID(b.keys()) }

// halves is the one rule by which a batch is split: by position.
func (b work) halves() []work {
	n := len(b.docs) / 2
	halves := []work{b.window.work(b.docs[:n:n]), b.window.work(b.docs[n:])}
	for i := range halves {
		halves[i].killed = b.killed
	}
	return halves
}

// read fills windows, gives every document its content key and every window its
// digest.
func (r *run) read(ctx context.Context, out chan<- *window) error {
	m := &r.count.stages[stageRead]
	told := 0
	for {
		w, ok := receive(ctx, r.free, m)
		if !ok {
			return context.Cause(ctx)
		}
		if w.Text, ok = receive(ctx, r.texts, m); !ok {
			return context.Cause(ctx)
		}
		end := m.begin()
		err := w.fill(ctx, r.Corpus, r.Recipe)
		end()
		for ; told < len(r.Corpus.Skipped()); told++ {
			r.Log.Warn("a file is left out", "why", r.Corpus.Skipped()[told].Err.Error())
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !send(ctx, out, w, m) {
			return context.Cause(ctx)
		}
	}
}

// fill reads the next window.
func (w *window) fill(ctx context.Context, c *corpus.Corpus, recipe key.Recipe) error {
	if err := c.Next(ctx, &w.Window); err != nil {
		return err
	}
	n := w.Len()
	w.keys = grow(w.keys, n)
	w.class = grow(w.class, n)
	w.entries = grow(w.entries, n)
	w.tokenOf = grow(w.tokenOf, n)
	w.elsewhere = grow(w.elsewhere, n)
	for i := range n {
		w.class[i] = w.Failure[i].String()
		w.entries[i] = checkpoint.Entry{}
		w.tokenOf[i] = -1
	}
	w.tokens.Reset()
	w.claims = map[key.Key]struct{}{}
	w.plan, w.pending, w.failed, w.failures = checkpoint.Plan{}, nil, nil, nil
	w.underway = 0
	w.bad.Reset()
	w.done, w.old, w.shard = false, shard.Info{}, [32]byte{}
	w.left.Store(0)
	w.committed = make(chan struct{})
	if err := w.hash(recipe); err != nil {
		return err
	}
	w.digest = w.identity(c.Files(), recipe)
	return nil
}

// hash computes the content keys on all cores.
func (w *window) hash(recipe key.Recipe) error {
	hasher := key.NewHasher(recipe)
	var group errgroup.Group
	var next atomic.Int64
	const share = 4096
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			return fault.Guard(func() error {
				h := hasher.Clone()
				for {
					from := int(next.Add(share)) - share
					if from >= len(w.keys) {
						return nil
					}
					for i := from; i < min(from+share, len(w.keys)); i++ {
						w.keys[i] = h.Key(w.Text.At(i))
					}
				}
			})
		})
	}
	return group.Wait()
}

// identity is the window digest: SHA-256 of the recipe and, for each document,
// its file, row, chunk, input failure and content key.
func (w *window) identity(files []corpus.File, recipe key.Recipe) [32]byte {
	h := sha256.New()
	digest := recipe.Digest()
	h.Write(digest[:])
	var b []byte
	file := int32(-1)
	for i := range w.keys {
		b = b[:0]
		if w.File[i] != file {
			file = w.File[i]
			b = key.AppendField(append(b, 'f'), []byte(files[file].Name))
		}
		b = binary.LittleEndian.AppendUint64(append(b, 'd'), uint64(w.Row[i]))
		if w.Chunk != nil {
			b = binary.LittleEndian.AppendUint32(b, uint32(w.Chunk[i]))
		}
		b = append(b, byte(w.Failure[i]))
		if w.Failure[i] != corpus.None {
			// Only the first part of such a text is held and hashed.
			b = binary.LittleEndian.AppendUint64(b, uint64(w.TextBytes[i]))
		}
		b = append(b, w.keys[i][:]...)
		h.Write(b)
	}
	return [32]byte(h.Sum(nil))
}

// dead lists the documents that get no vector, in corpus order.
func (w *window) dead() []int32 {
	var dead []int32
	for i, c := range w.class {
		if c != "" {
			dead = append(dead, int32(i))
		}
	}
	return dead
}

// embedded lists the documents that get a vector, in corpus order.
func (w *window) embedded() []int32 {
	docs := make([]int32, 0, w.Len())
	for i, c := range w.class {
		if c == "" {
			docs = append(docs, int32(i))
		}
	}
	return docs
}

// grow makes a slice of n elements, reusing s where it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
