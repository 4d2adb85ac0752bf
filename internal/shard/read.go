package shard

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// Reader reads a shard. It may be used by one goroutine at a time.
type Reader struct {
	Info
	path    string
	file    vfs.File
	parquet *parquet.File

	// Leaf columns.
	hash, tokens, truncated, embedding int
}

// Open opens a shard to read. A shard that is missing, damaged, foreign or of
// another version is an error that says so.
func Open(fsys vfs.FS, path string) (*Reader, error) {
	r, info, err := open(fsys, path)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, info.fault(path)
	}
	if _, ok := r.parquet.Lookup(metaFailures); ok {
		_ = r.Close()
		return nil, Info{State: Damaged, Why: "this file holds dead letters, not vectors"}.fault(path)
	}
	return r, nil
}

// Close ends reading.
func (r *Reader) Close() error { return r.file.Close() }

// Batch is consecutive rows of a shard. Its memory is used again for the next.
type Batch struct {
	First     int64     // row of the shard
	Keys      []key.Key // content keys
	NTokens   []int32   //
	Truncated []bool    //
	Vectors   []float32 // dim floats a row
}

// Read gives all rows of the shard at path to do, in order, some at a time:
// enough to put its vectors back into a store. Memory is bounded by a page of
// each column and fetchBytes of vectors. An error of do comes back as it is.
func Read(fsys vfs.FS, path string, do func(Batch) error) error {
	r, err := Open(fsys, path)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Scan(do)
}

// Scan gives all rows to do, in order, some at a time.
func (r *Reader) Scan(do func(Batch) error) error {
	n := max(1, min(int(r.Rows), fetchBytes/(4*r.Dim)))
	s := &scan{
		Batch:  Batch{Keys: make([]key.Key, n), NTokens: make([]int32, n), Truncated: make([]bool, n), Vectors: make([]float32, n*r.Dim)},
		values: make([]parquet.Value, n),
	}
	first := int64(0)
	for g, group := range r.parquet.RowGroups() {
		if err := r.scanGroup(g, group, s, first, do); err != nil {
			return err
		}
		first += group.NumRows()
	}
	return nil
}

// scan is the memory of a Scan.
type scan struct {
	Batch
	values []parquet.Value
}

func (r *Reader) scanGroup(g int, group parquet.RowGroup, s *scan, first int64, do func(Batch) error) error {
	columns := group.ColumnChunks()
	in := &input{r: r.file}
	cursors := make([]cursor, 4)
	err := r.guard(g, in, func() error {
		for i, c := range []int{r.hash, r.tokens, r.truncated, r.embedding} {
			cursors[i].pages = columns[c].(*parquet.FileColumnChunk).PagesFrom(in)
		}
		return nil
	})
	defer func() {
		for i := range cursors {
			cursors[i].close()
		}
	}()
	if err != nil {
		return err
	}
	for rows := group.NumRows(); rows > 0; {
		n := int(min(rows, int64(len(s.Keys))))
		b := Batch{first, s.Keys[:n], s.NTokens[:n], s.Truncated[:n], s.Vectors[:n*r.Dim]}
		if err := r.guard(g, in, func() error { return s.fill(b, cursors, r.Dim) }); err != nil {
			return err
		}
		if err := do(b); err != nil {
			return err
		}
		first, rows = first+int64(n), rows-int64(n)
	}
	return r.guard(g, in, func() error {
		for i := range cursors {
			if err := cursors[i].end(); err != nil {
				return err
			}
		}
		return nil
	})
}

// guard runs a piece of reading and says what its error means.
func (r *Reader) guard(group int, in *input, do func() error) error {
	err := guard(do)
	switch {
	case err == nil:
		return nil
	case in.err != nil:
		return in.err
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("a column ends before its rows do")
	}
	return fault.New(fault.CorruptFile, "the shard is damaged").In(r.path).AtRowGroup(group).Because(err).
		Hinting("delete it and run the same command again: it comes back from the store")
}

// fill reads one batch.
func (s *scan) fill(b Batch, cursors []cursor, dim int) error {
	values := s.values[:len(b.Keys)]
	if err := cursors[0].values(values, func(i int, v parquet.Value) error {
		text := v.ByteArray()
		if n, err := hex.Decode(b.Keys[i][:min(key.Size, len(text)/2)], text[:min(2*key.Size, len(text))&^1]); err != nil || n != key.Size || len(text) != 2*key.Size {
			return fmt.Errorf("a content hash is not %d hex digits", 2*key.Size)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := cursors[1].values(values, func(i int, v parquet.Value) error { b.NTokens[i] = v.Int32(); return nil }); err != nil {
		return err
	}
	if err := cursors[2].values(values, func(i int, v parquet.Value) error { b.Truncated[i] = v.Boolean(); return nil }); err != nil {
		return err
	}
	return cursors[3].vectors(b.Vectors, dim)
}

// cursor reads a column's pages one after the other.
type cursor struct {
	pages  parquet.Pages
	page   parquet.Page
	reader parquet.ValueReader
	floats []float32 // what is left of an embedding page
}

func (c *cursor) next() error {
	parquet.Release(c.page)
	c.page = nil
	page, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	c.page = page
	return nil
}

// values reads len(dst) values of a required column and gives each to do before
// its page goes.
func (c *cursor) values(dst []parquet.Value, do func(i int, v parquet.Value) error) error {
	for done := 0; done < len(dst); {
		if c.reader == nil {
			if err := c.next(); err != nil {
				return err
			}
			c.reader = c.page.Values()
		}
		n, err := c.reader.ReadValues(dst[done:])
		for i, v := range dst[done : done+n] {
			if err := do(done+i, v); err != nil {
				return err
			}
		}
		done += n
		switch {
		case err == io.EOF:
			c.reader = nil
		case err != nil:
			return err
		case n == 0:
			return io.ErrNoProgress
		}
	}
	return nil
}

// vectors reads len(dst)/dim rows of embedding.
func (c *cursor) vectors(dst []float32, dim int) error {
	for len(dst) > 0 {
		if len(c.floats) == 0 {
			if err := c.next(); err != nil {
				return err
			}
			floats, err := vectorsOf(c.page, dim)
			if err != nil {
				return err
			}
			c.floats = floats
		}
		n := copy(dst, c.floats)
		dst, c.floats = dst[n:], c.floats[n:]
	}
	return nil
}

// vectorsOf is a page's vectors, end to end, after a look at whether every row
// has dim floats.
func vectorsOf(p parquet.Page, dim int) ([]float32, error) {
	data := p.Data()
	floats, rep, def := data.Float(), p.RepetitionLevels(), p.DefinitionLevels()
	if len(floats) != len(rep) || len(floats) != len(def) || len(floats)%dim != 0 {
		return nil, fmt.Errorf("a page of %d floats in %d places is not of vectors of %d", len(floats), len(rep), dim)
	}
	for i := range rep {
		if (rep[i] == 0) != (i%dim == 0) || def[i] != 1 {
			return nil, fmt.Errorf("a vector does not have %d floats", dim)
		}
	}
	return floats, nil
}

// end checks that nothing is left.
func (c *cursor) end() error {
	if len(c.floats) > 0 {
		return fmt.Errorf("a column has more rows than the row group")
	}
	if c.reader != nil {
		if n, err := c.reader.ReadValues(make([]parquet.Value, 1)); n > 0 || err != io.EOF {
			return fmt.Errorf("a column has more rows than the row group")
		}
	}
	switch err := c.next(); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("a column has more pages than rows")
	default:
		return err
	}
}

func (c *cursor) close() {
	parquet.Release(c.page)
	if c.pages != nil {
		_ = c.pages.Close()
	}
}
