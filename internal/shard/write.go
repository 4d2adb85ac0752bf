package shard

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/publish"
)

const (
	// rowGroupBytes ends a row group: of vectors, or of ids and kept values. What
	// a row group holds stays in memory, compressed, until it is complete.
	rowGroupBytes = 64 << 20
	// fetchBytes of vectors are asked for at a time.
	fetchBytes = 4 << 20
	// pageBytes is the size of a page before compression. A query reads single
	// rows, so that small pages are better; at 1 MiB compression is no better.
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
	c := newChunk(l, w, max(1, fetchBytes/(4*l.dim)))
	perGroup := max(1, rowGroupBytes/(4*l.dim))
	for next := 0; next < len(r.Docs); {
		// A row group: cut by rows, then by the bytes of ids and kept values.
		for rows, kept := 0, int64(0); next < len(r.Docs) && rows < perGroup && kept < rowGroupBytes; {
			docs := r.Docs[next:min(len(r.Docs), next+min(c.rows, perGroup-rows))]
			docs, size := l.cut(docs, r.Columns, rowGroupBytes-kept)
			if err := c.write(docs, r, path); err != nil {
				return err
			}
			next, rows, kept = next+len(docs), rows+len(docs), kept+size
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return w.finish()
}

// cut keeps the first documents whose ids and kept values have limit bytes, at
// least one, and says how many they have.
func (l *Layout) cut(docs []int32, cols *column.Set, limit int64) ([]int32, int64) {
	size := int64(0)
	for i, doc := range docs {
		for j := range cols.Leaves {
			size += cols.Leaves[j].RowBytes(int(doc))
		}
		if size >= limit {
			return docs[:i+1], size
		}
	}
	return docs, size
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
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.DataPageVersion(1),
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

// chunk writes some rows at a time, column by column, and keeps its memory.
type chunk struct {
	layout    *Layout
	columns   []*parquet.ColumnWriter
	place     int // leaf column of file
	rest      int // leaf column of content_hash
	rows      int
	names     [][]byte
	vectors   []float32
	nTokens   []int32
	truncated []bool
	hex       []byte
	values    []parquet.Value
}

func newChunk(l *Layout, w *writer, rows int) *chunk {
	c := &chunk{
		layout: l, columns: w.ColumnWriters(), rows: rows,
		vectors: make([]float32, rows*l.dim), nTokens: make([]int32, rows), truncated: make([]bool, rows),
		hex: make([]byte, 2*key.Size*rows),
	}
	for _, f := range l.flat {
		if f.id {
			c.place++
		}
	}
	c.rest = len(c.columns) - 4
	return c
}

func (c *chunk) write(docs []int32, r Rows, path string) error {
	n := len(docs)
	vectors, nTokens, truncated := c.vectors[:n*c.layout.dim], c.nTokens[:n], c.truncated[:n]
	if err := r.Fetch(docs, vectors, nTokens, truncated); err != nil {
		return err
	}
	for i, v := range vectors {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			doc := docs[i/c.layout.dim]
			return fault.New(fault.BadVectors, "the vector of %s, row %d, is not finite", r.FileNames[r.File[doc]], r.Row[doc]).In(path).
				Hinting("the shard was not written; the store holds a vector that should never have been committed: use a new --store and report this")
		}
	}
	if c.names == nil {
		for _, name := range r.FileNames {
			c.names = append(c.names, []byte(name))
		}
	}
	if err := c.carry(docs, r.Columns); err != nil {
		return err
	}
	file := c.place
	if err := c.put(file, n, func(i int) parquet.Value { return parquet.ByteArrayValue(c.names[r.File[docs[i]]]) }); err != nil {
		return err
	}
	if err := c.put(file+1, n, func(i int) parquet.Value { return parquet.Int64Value(r.Row[docs[i]]) }); err != nil {
		return err
	}
	if c.layout.chunked {
		if err := c.put(file+2, n, func(i int) parquet.Value { return parquet.Int32Value(r.Chunk[docs[i]]) }); err != nil {
			return err
		}
	}
	for i, doc := range docs {
		hex.Encode(c.hex[2*key.Size*i:], r.Keys[doc][:])
	}
	if err := c.put(c.rest, n, func(i int) parquet.Value {
		return parquet.ByteArrayValue(c.hex[2*key.Size*i : 2*key.Size*(i+1)])
	}); err != nil {
		return err
	}
	if err := c.put(c.rest+1, n, func(i int) parquet.Value { return parquet.Int32Value(nTokens[i]) }); err != nil {
		return err
	}
	if err := c.put(c.rest+2, n, func(i int) parquet.Value { return parquet.BooleanValue(truncated[i]) }); err != nil {
		return err
	}
	return c.embed(vectors)
}

// put writes n values of a required column.
func (c *chunk) put(col, n int, value func(i int) parquet.Value) error {
	c.values = c.values[:0]
	for i := range n {
		c.values = append(c.values, value(i).Level(0, 0, col))
	}
	_, err := c.columns[col].WriteRowValues(c.values)
	return err
}

// embed writes vectors, one row at a time, so that a page ends soon after it is
// full.
func (c *chunk) embed(vectors []float32) error {
	col := c.rest + 3
	for dim := c.layout.dim; len(vectors) > 0; vectors = vectors[dim:] {
		c.values = c.values[:0]
		for i, v := range vectors[:dim] {
			c.values = append(c.values, parquet.FloatValue(v).Level(min(i, 1), 1, col))
		}
		if _, err := c.columns[col].WriteRowValues(c.values); err != nil {
			return err
		}
	}
	return nil
}

// carry writes ids and kept values, one row at a time, as they may be large.
func (c *chunk) carry(docs []int32, cols *column.Set) error {
	for i, f := range c.layout.flat {
		for _, doc := range docs {
			var err error
			if c.values, err = f.row(c.values[:0], &cols.Leaves[i], int(doc)); err != nil {
				return err
			}
			if _, err := c.columns[f.column].WriteRowValues(c.values); err != nil {
				return err
			}
		}
	}
	return nil
}

// row appends one row's entries, after a look at whether they fit the column:
// the Parquet library writes what it is given, and a value of another type or
// level would come back as another value.
func (f *flatColumn) row(dst []parquet.Value, leaf *column.Leaf, doc int) ([]parquet.Value, error) {
	dst = leaf.Row(dst, doc, f.column)
	for i, v := range dst {
		full := v.DefinitionLevel() == int(f.maxDef)
		ok := v.RepetitionLevel() <= int(f.maxRep) && (i > 0) == (v.RepetitionLevel() > 0)
		if v.IsNull() {
			ok = ok && (v.DefinitionLevel() < int(f.maxDef))
		} else {
			ok = ok && full && v.Kind() == f.typ.Kind()
		}
		if !ok {
			return nil, fault.New(fault.Internal, "column %q: a %v value at levels %d, %d does not fit a %v column with levels up to %d, %d", f.field,
				v.Kind(), v.RepetitionLevel(), v.DefinitionLevel(), f.typ, f.maxRep, f.maxDef)
		}
	}
	return dst, nil
}
