package shard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// body is where the Parquet library writes to. Row groups go through; the page
// index and the footer are held back, because the library's say things of
// columns without bounds that are not so: their column index would have zeros
// as bounds, by which a reader may skip pages, and a column of nulls would have
// the physical type -1. finish writes them again without that.
type body struct {
	w    io.Writer
	n    int64 // bytes that went through
	tail bytes.Buffer
	held bool
}

func (b *body) Write(p []byte) (int, error) {
	if b.held {
		return b.tail.Write(p)
	}
	n, err := b.w.Write(p)
	b.n += int64(n)
	return n, err
}

// finish ends the file. All row groups must have been flushed. exact tells for
// each leaf column whether it was written with bounds.
func (b *body) finish(w *parquet.Writer, exact []bool) error {
	b.held = true
	if err := w.Close(); err != nil {
		return err
	}
	held := b.tail.Bytes()
	b.held = false
	if b.n == 0 { // no row group, so that the magic is still in the tail
		if _, err := b.Write(held[:4]); err != nil {
			return err
		}
		held = held[4:]
	}
	start := b.n
	move := func(offset int64, length int32) (int64, error) {
		at := b.n
		from := offset - start
		if from < 0 || from+int64(length) > int64(len(held)) {
			return 0, fmt.Errorf("the page index lies outside the file's end: offset %d, length %d", offset, length)
		}
		_, err := b.Write(held[from : from+int64(length)])
		return at, err
	}
	meta := *w.File().Metadata()
	for g := range meta.RowGroups {
		columns := meta.RowGroups[g].Columns
		for c := range columns {
			chunk := &columns[c]
			if chunk.MetaData.Type < 0 {
				chunk.MetaData.Type = format.Int32
			}
			if !exact[c] {
				chunk.ColumnIndexOffset, chunk.ColumnIndexLength = 0, 0
				continue
			}
			at, err := move(chunk.ColumnIndexOffset, chunk.ColumnIndexLength)
			if err != nil {
				return err
			}
			chunk.ColumnIndexOffset = at
		}
	}
	for g := range meta.RowGroups {
		columns := meta.RowGroups[g].Columns
		for c := range columns {
			at, err := move(columns[c].OffsetIndexOffset, columns[c].OffsetIndexLength)
			if err != nil {
				return err
			}
			columns[c].OffsetIndexOffset = at
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		return err
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	footer = append(footer, "PAR1"...)
	_, err = b.Write(footer)
	return err
}
