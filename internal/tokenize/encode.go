package tokenize

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"localembed/internal/column"
)

// Tokens holds the ids of documents in one slice. Document i has
// IDs[Ends[i-1]:Ends[i]], and Ends[-1] counts as 0.
type Tokens struct {
	IDs       []uint32
	Ends      []int64
	Truncated []bool // whether ids were cut off at the limit
}

// Len is the number of documents.
func (t *Tokens) Len() int { return len(t.Ends) }

// At is the ids of document i. It aliases the memory of t.
func (t *Tokens) At(i int) []uint32 {
	start := int64(0)
	if i > 0 {
		start = t.Ends[i-1]
	}
	return t.IDs[start:t.Ends[i]:t.Ends[i]]
}

// Reset drops all documents and keeps the memory.
func (t *Tokens) Reset() {
	t.IDs, t.Ends, t.Truncated = t.IDs[:0], t.Ends[:0], t.Truncated[:0]
}

func (t *Tokens) append(c chunk) {
	base := int64(len(t.IDs))
	t.IDs = append(t.IDs, c.ids...)
	for _, end := range c.ends {
		t.Ends = append(t.Ends, base+end)
	}
	t.Truncated = append(t.Truncated, c.truncated...)
}

// DocumentError says that one document cannot be encoded.
type DocumentError struct {
	Document int32 // as it stood in the docs of the call
	Err      error
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %d of the window cannot be tokenized: %v", e.Document, e.Err)
}

func (e *DocumentError) Unwrap() error { return e.Err }

// A call into the library takes chunkDocs documents, or fewer where the limit is
// so high that their ids could pass chunkTokens (1 MiB). From 1 to 1 024 documents
// a call all measured alike; 64 keep a call's ids in the core's cache and let a
// cancelled run end at once.
const (
	chunkDocs   = 64
	chunkTokens = 1 << 18
)

// Encode appends the texts docs[0], docs[1], … to out, in this order, working on
// all cores. On an error out is as it was: a *DocumentError for the first document
// that cannot be encoded, or the cause of ctx.
func (t *Tokenizer) Encode(ctx context.Context, texts *column.Arena, docs []int32, out *Tokens) error {
	if len(docs) == 0 {
		return context.Cause(ctx)
	}
	for _, d := range docs {
		texts.At(int(d)) // panics here, and not in the library, if there is no such text
	}
	ids, ends := len(out.IDs), len(out.Ends)
	size := min(chunkDocs, max(1, chunkTokens/t.limits.maxTokens))
	chunks := (len(docs) + size - 1) / size
	ordered := appender{out: out, waiting: make([]*chunk, chunks)}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), chunks) {
		group.Go(func() error {
			room := newChunk(size, t.limits.maxTokens)
			for {
				i := int(next.Add(1)) - 1
				if i >= chunks {
					return nil
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				part := docs[i*size : min((i+1)*size, len(docs))]
				var done int
				if err := t.threads.do(func() (err error) { done, err = t.native.encode(t.limits, texts, part, &room); return err }); err != nil {
					return ordered.fail(i, &DocumentError{part[done], err})
				}
				ordered.add(i, room.copy(done))
			}
		})
	}
	err := group.Wait()
	if ordered.failure != nil {
		err = ordered.failure
	}
	if err != nil {
		out.IDs, out.Ends, out.Truncated = out.IDs[:ids], out.Ends[:ends], out.Truncated[:ends]
	}
	return err
}

// appender puts chunks into the result in their order, whichever is ready first,
// so that at most the chunks behind a slow one are held twice.
type appender struct {
	mu      sync.Mutex
	out     *Tokens
	waiting []*chunk
	next    int

	failure error // of chunk failed, the first one in their order
	failed  int
}

func (a *appender) add(i int, c chunk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[i] = &c
	for a.next < len(a.waiting) && a.waiting[a.next] != nil {
		a.out.append(*a.waiting[a.next])
		a.waiting[a.next] = nil
		a.next++
	}
}

// fail keeps the error of the first chunk that has one. Chunks are begun in order
// and not interrupted, so that it is the same whatever the number of cores.
func (a *appender) fail(i int, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure == nil || i < a.failed {
		a.failure, a.failed = err, i
	}
	return err
}

func newChunk(docs, maxTokens int) chunk {
	return chunk{ids: make([]uint32, docs*maxTokens), ends: make([]int64, docs), truncated: make([]bool, docs)}
}

// copy is a chunk of exactly the first n documents.
func (c chunk) copy(n int) chunk {
	return chunk{
		ids:       append([]uint32(nil), c.ids[:c.ends[n-1]]...),
		ends:      append([]int64(nil), c.ends[:n]...),
		truncated: append([]bool(nil), c.truncated[:n]...),
	}
}
