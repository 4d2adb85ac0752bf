package shard

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/fault"
)

// normTolerance is how far the length of a normalized vector may be from 1: half
// precision and --dims stay below it by far.
const normTolerance = 1e-3

// Check reads the whole shard at path and compares it with the documents that it should
// hold: every page's checksum, and for every row ids, place, kept values, content hash, token
// count, and a vector that is finite and, where the recipe normalizes, of length 1. r is as for Write,
// without Fetch. What is wrong goes to found as a *fault.Error, the first of each kind in a
// row group; an error of found or of the file system ends the check. Memory is bounded by
// a page.
func (l *Layout) Check(fsys vfs.FS, path string, r Rows, found func(error) error) error {
	file, err := Open(fsys, path)
	if err != nil {
		return err
	}
	defer file.Close()
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.CorruptFile, format, args...).In(path).
			Hinting("delete it and run the same command again: it is written again")
	}
	if file.Rows != int64(len(r.Docs)) {
		if err := found(bad("it has %d rows, and the corpus has %d documents for it", file.Rows, len(r.Docs))); err != nil {
			return err
		}
	}
	docs, cut := r.Docs, int64(0)
	for g, group := range file.parquet.RowGroups() {
		n := min(int(group.NumRows()), len(docs))
		c := &check{layout: l, rows: r, docs: docs[:n], cut: &cut}
		for i, chunk := range group.ColumnChunks() {
			in := &input{r: file.file}
			var wrong *wrongRow
			err := file.guard(g, in, func() error {
				err := c.column(i, chunk.(*parquet.FileColumnChunk), in, group.NumRows())
				if errors.As(err, &wrong) {
					return nil
				}
				return err
			})
			switch {
			case wrong != nil:
				err = found(bad("column %s: %s", file.parquet.Schema().Columns()[i][0], wrong.why).AtRowGroup(g).AtRow(int64(wrong.row) + file.before(g)))
			case fault.Is(err, fault.CorruptFile):
				err = found(err)
			}
			if err != nil {
				return err
			}
		}
		docs = docs[n:]
	}
	if cut != file.Truncated {
		return found(bad("its footer says that %d texts were cut, and %d rows are flagged", file.Truncated, cut))
	}
	return nil
}

// before is the number of rows in front of a row group.
func (r *Reader) before(group int) (rows int64) {
	for _, g := range r.parquet.RowGroups()[:group] {
		rows += g.NumRows()
	}
	return rows
}

// wrongRow is a row, counted from its row group's first, that differs from the document it
// should be of.
type wrongRow struct {
	row int
	why string
}

func (w *wrongRow) Error() string { return w.why }

// check compares a row group's columns with documents.
type check struct {
	layout *Layout
	rows   Rows
	docs   []int32
	cut    *int64 // rows flagged as truncated
	want   []parquet.Value
}

// column compares leaf column i.
func (c *check) column(i int, chunk *parquet.FileColumnChunk, in io.ReaderAt, rows int64) error {
	l := c.layout
	last := len(l.schema.Columns()) - 1
	if i == last {
		return c.vectors(chunk, in)
	}
	for j := range l.flat {
		if f := &l.flat[j]; f.column == i {
			return c.values(chunk, in, func(doc int32) (err error) {
				c.want, err = f.row(c.want[:0], &c.rows.Columns.Leaves[j], int(doc))
				return err
			})
		}
	}
	one := func(v parquet.Value) { c.want = append(c.want[:0], v) }
	first := 0 // the file column
	if l.hasID {
		first = len(leaves(bare(l.fields[0].Node), 0, 0))
	}
	switch {
	case i == first:
		return c.values(chunk, in, func(doc int32) error {
			one(parquet.ByteArrayValue([]byte(c.rows.FileNames[c.rows.File[doc]])))
			return nil
		})
	case i == first+1:
		return c.values(chunk, in, func(doc int32) error { one(parquet.Int64Value(c.rows.Row[doc])); return nil })
	case i == first+2 && l.chunked:
		return c.values(chunk, in, func(doc int32) error { one(parquet.Int32Value(c.rows.Chunk[doc])); return nil })
	case i == last-3:
		return c.values(chunk, in, func(doc int32) error {
			one(parquet.ByteArrayValue([]byte(hex.EncodeToString(c.rows.Keys[doc][:]))))
			return nil
		})
	case i == last-2:
		return c.scalars(chunk, in, func(v parquet.Value) string {
			if n, most := v.Int32(), l.meta.Recipe.MaxTokens; n < 1 || most > 0 && int(n) > most {
				return fmt.Sprintf("%d tokens, where 1 to %d can be", n, most)
			}
			return ""
		})
	default:
		return c.scalars(chunk, in, func(v parquet.Value) string {
			if v.Boolean() {
				*c.cut++
			}
			return ""
		})
	}
}

// each gives every value of a column to do.
func each(chunk *parquet.FileColumnChunk, in io.ReaderAt, do func(parquet.Value) error) error {
	pages := chunk.PagesFrom(in)
	defer pages.Close()
	values := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = eachOf(page.Values(), values, do)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

func eachOf(r parquet.ValueReader, values []parquet.Value, do func(parquet.Value) error) error {
	for {
		n, err := r.ReadValues(values)
		for _, v := range values[:n] {
			if err := do(v); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// values compares a column with what expect puts into c.want for each document.
func (c *check) values(chunk *parquet.FileColumnChunk, in io.ReaderAt, expect func(doc int32) error) error {
	row, at := -1, 0
	c.want = c.want[:0]
	err := each(chunk, in, func(v parquet.Value) error {
		if at == len(c.want) {
			row++
			at = 0
			if row >= len(c.docs) {
				return io.EOF // more rows than documents: said by the counts
			}
			if err := expect(c.docs[row]); err != nil {
				return err
			}
		}
		w := c.want[at]
		at++
		if !parquet.Equal(v, w) || v.RepetitionLevel() != w.RepetitionLevel() || v.DefinitionLevel() != w.DefinitionLevel() {
			return &wrongRow{row, fmt.Sprintf("%.60q, and the corpus says %.60q", v.String(), w.String())}
		}
		return nil
	})
	if errors.Is(err, io.EOF) && row >= len(c.docs) {
		return nil
	}
	if err == nil && row+1 < len(c.docs) {
		return &wrongRow{row + 1, "it ends before this row"}
	}
	return err
}

func (c *check) scalars(chunk *parquet.FileColumnChunk, in io.ReaderAt, wrong func(parquet.Value) string) error {
	row := -1
	return each(chunk, in, func(v parquet.Value) error {
		row++
		if why := wrong(v); why != "" {
			return &wrongRow{row, why}
		}
		return nil
	})
}

func (c *check) vectors(chunk *parquet.FileColumnChunk, in io.ReaderAt) error {
	pages := cursor{pages: chunk.PagesFrom(in)}
	defer pages.close()
	dim, row := c.layout.dim, 0
	for {
		err := pages.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		floats, err := vectorsOf(pages.page, dim)
		if err != nil {
			return err
		}
		for ; len(floats) > 0; floats = floats[dim:] {
			sum := 0.0
			for _, v := range floats[:dim] {
				sum += float64(v) * float64(v)
			}
			if math.IsNaN(sum) || math.IsInf(sum, 0) {
				return &wrongRow{row, "the vector is not finite"}
			}
			if norm := math.Sqrt(sum); c.layout.meta.Recipe.Normalize && math.Abs(norm-1) > normTolerance {
				return &wrongRow{row, fmt.Sprintf("the vector has length %.4f instead of 1", norm)}
			}
			row++
		}
	}
	if row < len(c.docs) {
		return &wrongRow{row, "it ends before this row"}
	}
	return nil
}
