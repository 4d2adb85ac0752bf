package shard

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Row says which document a row of a shard is.
type Row struct {
	ID    string // as text, "" if null or if the corpus has no ids
	File  string
	Row   int64
	Chunk int32  // 0 unless chunked
	Text  []byte // the column asked for; nil if null
}

// Row reads one row, counted from 0 over the shard. text is a kept column of
// strings or bytes, or "" for none; HasText tells whether there is one. It
// decompresses one page of each column, so it is for a handful of rows.
func (r *Reader) Row(row int64, text string) (Row, error) {
	in := &input{r: r.file}
	out := Row{}
	at := row
	for g, group := range r.parquet.RowGroups() {
		if at >= group.NumRows() {
			at -= group.NumRows()
			continue
		}
		err := r.guard(g, in, func() (err error) { out, err = r.row(in, group, at, text); return err })
		return out, err
	}
	return out, fmt.Errorf("%s has no row %d", r.path, row)
}

// HasText tells whether Row can read the column name as a text.
func (r *Reader) HasText(name string) bool {
	c := r.parquet.Root().Column(name)
	return c != nil && c.Leaf() && c.MaxRepetitionLevel() == 0 && c.Type().Kind() == parquet.ByteArray
}

func (r *Reader) row(in *input, group parquet.RowGroup, at int64, text string) (out Row, err error) {
	value := func(name string) (v parquet.Value, typ parquet.Type, err error) {
		c := r.parquet.Root().Column(name)
		if c == nil || !c.Leaf() || c.MaxRepetitionLevel() != 0 {
			return parquet.NullValue(), nil, nil
		}
		v, err = valueAt(group.ColumnChunks()[c.Index()].(*parquet.FileColumnChunk), in, at)
		return v, c.Type(), err
	}
	file, _, err := value(ColumnFile)
	if err != nil {
		return out, err
	}
	n, _, err := value(ColumnRow)
	if err != nil {
		return out, err
	}
	chunk, _, err := value(ColumnChunk)
	if err != nil {
		return out, err
	}
	if file.Kind() != parquet.ByteArray || n.Kind() != parquet.Int64 {
		return out, errors.New("the columns file and row are not there")
	}
	out.File, out.Row = file.String(), n.Int64()
	if chunk.Kind() == parquet.Int32 && !chunk.IsNull() {
		out.Chunk = chunk.Int32()
	}
	if first := r.parquet.Root().Columns()[0]; first.Name() != ColumnFile { // an id column stands first
		id, typ, err := value(first.Name())
		if err != nil {
			return out, err
		}
		out.ID = idText(id, typ)
	}
	if text != "" && r.HasText(text) {
		v, _, err := value(text)
		if err != nil {
			return out, err
		}
		if !v.IsNull() {
			out.Text = v.ByteArray()
		}
	}
	return out, nil
}

// valueAt reads the value of one row of a column outside lists; the value is
// the caller's.
func valueAt(c *parquet.FileColumnChunk, in io.ReaderAt, at int64) (parquet.Value, error) {
	if _, err := c.OffsetIndexFrom(in); err != nil { // so that pages before the row are skipped
		return parquet.NullValue(), err
	}
	pages := c.PagesFrom(in)
	defer pages.Close()
	if err := pages.SeekToRow(at); err != nil {
		return parquet.NullValue(), err
	}
	page, err := pages.ReadPage()
	if err != nil {
		return parquet.NullValue(), err
	}
	defer parquet.Release(page)
	var v [1]parquet.Value
	if n, err := page.Values().ReadValues(v[:]); n != 1 {
		return parquet.NullValue(), errors.Join(io.ErrUnexpectedEOF, err)
	}
	return v[0].Clone(), nil
}

// idText is an id as a person writes it: numbers in decimal, UUIDs with dashes,
// text as it is, other bytes in hex.
func idText(v parquet.Value, typ parquet.Type) string {
	if v.IsNull() {
		return ""
	}
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		n := v.Int64()
		if v.Kind() == parquet.Int32 {
			n = int64(v.Int32())
		}
		if t, ok := logical(typ).(*format.IntType); ok && !t.IsSigned {
			if v.Kind() == parquet.Int32 {
				return strconv.FormatUint(uint64(uint32(n)), 10)
			}
			return strconv.FormatUint(uint64(n), 10)
		}
		return strconv.FormatInt(n, 10)
	case parquet.FixedLenByteArray:
		b := hex.EncodeToString(v.ByteArray())
		if _, ok := logical(typ).(*format.UUIDType); ok && len(b) == 32 {
			return b[:8] + "-" + b[8:12] + "-" + b[12:16] + "-" + b[16:20] + "-" + b[20:]
		}
		return b
	case parquet.ByteArray:
		if _, ok := logical(typ).(*format.StringType); ok {
			return string(v.ByteArray())
		}
		return hex.EncodeToString(v.ByteArray())
	default:
		return v.String()
	}
}
