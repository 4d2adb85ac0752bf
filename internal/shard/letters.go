package shard

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

// Letter says which document a dead letter is of, and why it is one.
type Letter struct {
	File      string
	Row       int64
	Chunk     int32 // -1 for a null or empty list; 0 where texts are no lists
	Class     string
	Attempts  int32
	Message   string
	Text      []byte // cut to MaxFailedText; only where a device was tried, so that few are held
	TextBytes int64  // of the whole text
}

// ReadFailures reads the whole dead letters file at path, every page of it, and returns
// what each row is of, in order, and the shard digest in the footer.
func ReadFailures(fsys vfs.FS, path string) (letters []Letter, digest [32]byte, err error) {
	r, info, err := open(fsys, path)
	if err != nil {
		return nil, digest, err
	}
	if r == nil {
		return nil, digest, info.fault(path)
	}
	defer r.Close()
	if _, ok := r.parquet.Lookup(metaFailures); !ok {
		return nil, digest, Info{State: Damaged, Why: "this file holds vectors, not dead letters"}.fault(path)
	}
	names := r.parquet.Schema().Columns()
	for g, group := range r.parquet.RowGroups() {
		first := len(letters)
		letters = append(letters, make([]Letter, group.NumRows())...)
		for i, chunk := range group.ColumnChunks() {
			in := &input{r: r.file}
			err := r.guard(g, in, func() error {
				at := first
				return each(chunk.(*parquet.FileColumnChunk), in, func(v parquet.Value) error {
					if len(names[i]) != 1 || at == len(letters) {
						return nil
					}
					letters[at].set(names[i][0], v)
					at++
					return nil
				})
			})
			if err != nil {
				return nil, digest, err
			}
		}
	}
	return letters, info.Digest, nil
}

func (l *Letter) set(column string, v parquet.Value) {
	switch {
	case column == ColumnFile && v.Kind() == parquet.ByteArray:
		l.File = string(v.ByteArray())
	case column == ColumnRow && v.Kind() == parquet.Int64:
		l.Row = v.Int64()
	case column == ColumnChunk && v.IsNull():
		l.Chunk = -1
	case column == ColumnChunk && v.Kind() == parquet.Int32:
		l.Chunk = v.Int32()
	case column == ColumnClass && v.Kind() == parquet.ByteArray:
		l.Class = string(v.ByteArray())
	case column == ColumnAttempts && v.Kind() == parquet.Int32:
		l.Attempts = v.Int32()
	case column == ColumnMessage && v.Kind() == parquet.ByteArray:
		l.Message = string(v.ByteArray())
	case column == ColumnText && v.Kind() == parquet.ByteArray && l.Attempts > 0: // which stand before it
		l.Text = bytes.Clone(v.ByteArray())
	case column == ColumnTextBytes && v.Kind() == parquet.Int64:
		l.TextBytes = v.Int64()
	}
}
