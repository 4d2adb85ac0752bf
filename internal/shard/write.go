package shard

import (
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/publish"
)

const (
	// rowGroupBytes ends a row group: of vectors, or of ids and kept values. What
	// a row group holds stays in memory, compressed, until it is complete, so that
	// small windows, which are for little memory, have smaller ones: shardGroups of
	// them, but not below leastGroupBytes.
	rowGroupBytes   = 8 << 20
	leastGroupBytes = 1 << 20
	shardGroups     = 8
	// fetchBytes of vectors are asked for at a time.
	fetchBytes = 1 << 20
	// pageBytes is the size of a page before compression. A query reads single
	// rows, so that small pages are better; 1 MiB compresses no better, 64 KiB 17 % worse.
	pageBytes = 256 << 10
)

// Rows are the documents of one window that have a vector, with what the
// window knows of them. Docs are positions in the window; all other slices have
// one entry per position.
type Rows struct {
	Docs      []int32     // ascending; corpus order
	FileNames []string    // the values of the file column
	File      []int32     // index into FileNames
	Row       []int64     // within the file, from 0
	Chunk     []int32     // from 0; nil unless chunked
	Columns   *column.Set // id first if any, then kept columns, of the layout's fields
	Keys      []key.Key   // content keys
	Truncated int64       // how many of Docs have a truncated text; the footer says it too
	Fetch     Fetch
}

// Fetch fills in what the store holds of some documents: dim floats, the number
// of tokens and the truncated flag of each. docs are positions in the window,
// ascending.
type Fetch func(docs []int32, vectors []float32, nTokens []int32, truncated []bool) error

// Write publishes the shard of window index in the folder out, which must
// exist. digest is what Digest gave for the window. An error from Fetch comes
// back as it is.
func (l *Layout) Write(fs vfs.FS, out string, index int, digest [32]byte, r Rows) error {
	path := Path(fs, out, index)
	return publish.File(fs, path, func(w io.Writer) error {
		return l.write(w, path, digest, r)
	})
}

func (l *Layout) write(out io.Writer, path string, digest [32]byte, r Rows) error {
	options, err := l.meta.metadata()
	if err != nil {
		return err
	}
	options = append(options,
		parquet.KeyValueMetadata(metaDigest, hex.EncodeToString(digest[:])),
		parquet.KeyValueMetadata(metaTruncated, strconv.FormatInt(r.Truncated, 10)))
	if l.arrow != "" {
		options = append(options, parquet.KeyValueMetadata(metaArrow, l.arrow))
	}
	w := newWriter(out, l.schema, options)
	groups := l.rowGroups(r)
	// Row groups are encoded side by side and written in order, so that the bytes
	// do not depend on the number of cores. Fetch is called by one at a time.
	var fetching sync.Mutex
	fetch := r.Fetch
	r.Fetch = func(docs []int32, vectors []float32, nTokens []int32, truncated []bool) error {
		fetching.Lock()
		defer fetching.Unlock()
		return fetch(docs, vectors, nTokens, truncated)
	}
	encoders := make([]*encoder, min(len(groups), encoders()))
	for i := range encoders {
		encoders[i] = newEncoder(l, w.BeginRowGroup(), r, path)
	}
	for len(groups) > 0 {
		side := groups[:min(len(groups), len(encoders))]
		var g errgroup.Group
		for i, docs := range side {
			g.Go(func() error { return fault.Guard(func() error { return encoders[i].group(docs) }) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i := range side {
			if _, err := encoders[i].rows.Commit(); err != nil {
				return err
			}
		}
		groups = groups[len(side):]
	}
	return w.finish()
}

// encoders is how many row groups are encoded side by side: a core encodes
// about 40 000 vectors of 384 floats a second, a GPU may make more, and each
// holds a row group in memory. Most cores are the tokenizer's and the devices'.
func encoders() int { return max(1, min(4, runtime.GOMAXPROCS(0)/4)) }

// rowGroups cuts the documents: by the bytes of vectors, then by those of ids
// and kept values, at least one document each.
func (l *Layout) rowGroups(r Rows) (groups [][]int32) {
	whole := int64(len(r.Docs)) * int64(4*l.dim)
	limit := min(l.group, max(leastGroupBytes, whole/shardGroups))
	most := max(1, int(limit)/(4*l.dim))
	from, kept := 0, int64(0)
	for i, doc := range r.Docs {
		for j := range r.Columns.Leaves {
			kept += r.Columns.Leaves[j].RowBytes(int(doc))
		}
		if i+1 == len(r.Docs) || i+1-from == most || kept >= limit {
			groups = append(groups, r.Docs[from:i+1])
			from, kept = i+1, 0
		}
	}
	return groups
}

// writer is a Parquet file being written.
type writer struct {
	*parquet.Writer
	body  *body
	exact []bool // by leaf column: written with bounds
}

// newWriter starts a file. Only fixed-width columns outside lists have bounds,
// and floats never: their order is a matter of opinion.
func newWriter(out io.Writer, schema *parquet.Schema, options []parquet.WriterOption) *writer {
	b := &body{w: out}
	options = append(options,
		schema,
		parquet.CreatedBy("localembed", "1", ""),
		parquet.Compression(&codec{}),
		parquet.DataPageVersion(1),
		parquet.DataPageStatistics(false),
		parquet.PageBufferSize(pageBytes),
		parquet.WriteBufferSize(0),
	)
	var exact []bool
	for i, path := range schema.Columns() {
		info, _ := schema.Lookup(path...)
		bounds := hasBounds(info.Node) && len(path) == 1
		exact = append(exact, bounds)
		if !bounds {
			options = append(options, parquet.SkipPageBounds(path...))
		}
		if info.ColumnIndex != i {
			panic(fmt.Sprintf("column %v has index %d and place %d", path, info.ColumnIndex, i))
		}
	}
	// The generic writer that is to replace this one makes functions that convert
	// Go values on its way, which panic for columns like ours that have no Go type.
	//lint:ignore SA1019 see above
	w := parquet.NewWriter(b, options...) //nolint:staticcheck // see above
	return &writer{w, b, exact}
}

func hasBounds(n parquet.Node) bool {
	if n.Repeated() {
		return false
	}
	switch n.Type().Kind() {
	case parquet.Int32, parquet.Int64:
		return true
	default:
		return false
	}
}

func (w *writer) finish() error { return w.body.finish(w.Writer, w.exact) }
