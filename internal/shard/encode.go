package shard

import (
	"encoding/hex"
	"math"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/key"
)

// encoder makes row groups, some rows at a time and column by column, and keeps
// its memory.
type encoder struct {
	layout    *Layout
	rows      *parquet.ConcurrentRowGroupWriter
	columns   []*parquet.ColumnWriter
	in        Rows
	path      string
	place     int // leaf column of file
	rest      int // leaf column of content_hash
	names     [][]byte
	vectors   []float32
	nTokens   []int32
	truncated []bool
	hex       []byte
	values    []parquet.Value
}

func newEncoder(l *Layout, rows *parquet.ConcurrentRowGroupWriter, r Rows, path string) *encoder {
	n := max(1, min(len(r.Docs), fetchBytes/(4*l.dim)))
	e := &encoder{
		layout: l, rows: rows, columns: rows.ColumnWriters(), in: r, path: path,
		vectors: make([]float32, n*l.dim), nTokens: make([]int32, n), truncated: make([]bool, n),
		hex: make([]byte, 2*key.Size*n),
	}
	for _, f := range l.flat {
		if f.id {
			e.place++
		}
	}
	e.rest = len(e.columns) - 4
	for _, name := range r.FileNames {
		e.names = append(e.names, []byte(name))
	}
	return e
}

// group encodes one row group.
func (e *encoder) group(docs []int32) error {
	for len(docs) > 0 {
		n := min(len(docs), len(e.nTokens))
		if err := e.some(docs[:n]); err != nil {
			return err
		}
		docs = docs[n:]
	}
	return nil
}

func (e *encoder) some(docs []int32) error {
	r := e.in
	n := len(docs)
	vectors, nTokens, truncated := e.vectors[:n*e.layout.dim], e.nTokens[:n], e.truncated[:n]
	if err := r.Fetch(docs, vectors, nTokens, truncated); err != nil {
		return err
	}
	for i, v := range vectors {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			doc := docs[i/e.layout.dim]
			return fault.New(fault.BadVectors, "the vector of %s, row %d, is not finite", r.FileNames[r.File[doc]], r.Row[doc]).In(e.path).
				Hinting("the shard was not written; the store holds a vector that should never have been committed: use a new --store and report this")
		}
	}
	if err := e.carry(docs, r.Columns); err != nil {
		return err
	}
	file := e.place
	if err := e.put(file, n, func(i int) parquet.Value { return parquet.ByteArrayValue(e.names[r.File[docs[i]]]) }); err != nil {
		return err
	}
	if err := e.put(file+1, n, func(i int) parquet.Value { return parquet.Int64Value(r.Row[docs[i]]) }); err != nil {
		return err
	}
	if e.layout.chunked {
		if err := e.put(file+2, n, func(i int) parquet.Value { return parquet.Int32Value(r.Chunk[docs[i]]) }); err != nil {
			return err
		}
	}
	for i, doc := range docs {
		hex.Encode(e.hex[2*key.Size*i:], r.Keys[doc][:])
	}
	if err := e.put(e.rest, n, func(i int) parquet.Value {
		return parquet.ByteArrayValue(e.hex[2*key.Size*i : 2*key.Size*(i+1)])
	}); err != nil {
		return err
	}
	if err := e.put(e.rest+1, n, func(i int) parquet.Value { return parquet.Int32Value(nTokens[i]) }); err != nil {
		return err
	}
	if err := e.put(e.rest+2, n, func(i int) parquet.Value { return parquet.BooleanValue(truncated[i]) }); err != nil {
		return err
	}
	return e.embed(vectors)
}

// put writes n values of a required column.
func (e *encoder) put(col, n int, value func(i int) parquet.Value) error {
	e.values = e.values[:0]
	for i := range n {
		e.values = append(e.values, value(i).Level(0, 0, col))
	}
	_, err := e.columns[col].WriteRowValues(e.values)
	return err
}

// embed writes vectors, one row at a time, so that a page ends soon after it is
// full.
func (e *encoder) embed(vectors []float32) error {
	col := e.rest + 3
	for dim := e.layout.dim; len(vectors) > 0; vectors = vectors[dim:] {
		e.values = e.values[:0]
		e.values = append(e.values, parquet.FloatValue(vectors[0]).Level(0, 1, col))
		for _, v := range vectors[1:dim] {
			e.values = append(e.values, parquet.FloatValue(v).Level(1, 1, col))
		}
		if _, err := e.columns[col].WriteRowValues(e.values); err != nil {
			return err
		}
	}
	return nil
}

// carry writes ids and kept values, one row at a time, as they may be large.
func (e *encoder) carry(docs []int32, cols *column.Set) error {
	for i, f := range e.layout.flat {
		for _, doc := range docs {
			var err error
			if e.values, err = f.row(e.values[:0], &cols.Leaves[i], int(doc)); err != nil {
				return err
			}
			if _, err := e.columns[f.column].WriteRowValues(e.values); err != nil {
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
	if len(dst) == 0 {
		return nil, fault.New(fault.Internal, "column %q: a row has no entry", f.field)
	}
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
