package shard

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/publish"
)

// MaxFailedText is how much of a dead letter's text is kept, in bytes.
const MaxFailedText = 64 << 10

// Failed is one dead letter.
type Failed struct {
	Doc       int32  // position in the window
	Class     string // why, as docs and report name it
	Attempts  int32  // runs on a device; 0 for a text that never reached one
	Message   string // a sentence
	Text      []byte // raw, cut to MaxFailedText; nil for a null text
	TextBytes int64  // length of the whole text; 0 for a null text
}

// WriteFailures publishes the dead letters of window index, ascending by
// position, in OUT/failures, a folder that only its owner can read: it holds raw
// text. digest is the window's shard digest, by which the two files belong
// together. r needs no Docs, Keys and Fetch. Without dead letters a file that is
// there from an earlier run is removed.
func (l *Layout) WriteFailures(fsys vfs.FS, out string, index int, digest [32]byte, r Rows, failed []Failed) error {
	path := FailuresPath(fsys, out, index)
	if len(failed) == 0 {
		if err := publish.Remove(fsys, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := publish.MkdirAll(fsys, fsys.PathDir(path), 0o700); err != nil {
		return err
	}
	return publish.Private(fsys, path, func(w io.Writer) error {
		return l.writeFailures(w, digest, r, failed)
	})
}

func (l *Layout) writeFailures(out io.Writer, digest [32]byte, r Rows, failed []Failed) error {
	options, err := l.meta.metadata()
	if err != nil {
		return err
	}
	options = append(options,
		parquet.KeyValueMetadata(metaDigest, hex.EncodeToString(digest[:])),
		parquet.KeyValueMetadata(metaFailures, "true"))
	w := newWriter(out, l.failures, options)
	columns := w.ColumnWriters()
	var row []parquet.Value
	size := int64(0)
	for _, f := range failed {
		col := 0
		for i, flat := range l.flat {
			if !flat.id {
				break
			}
			if row, err = flat.row(row[:0], &r.Columns.Leaves[i], int(f.Doc)); err != nil {
				return err
			}
			if _, err := columns[col].WriteRowValues(row); err != nil {
				return err
			}
			col++
		}
		text := parquet.NullValue().Level(0, 0, 0)
		if f.Text != nil {
			text = parquet.ByteArrayValue(f.Text[:min(len(f.Text), MaxFailedText)]).Level(0, 1, 0)
		}
		values := []parquet.Value{
			parquet.ByteArrayValue([]byte(r.FileNames[r.File[f.Doc]])),
			parquet.Int64Value(r.Row[f.Doc]),
		}
		if l.chunked {
			chunk := parquet.NullValue().Level(0, 0, 0)
			if n := r.Chunk[f.Doc]; n >= 0 {
				chunk = parquet.Int32Value(n).Level(0, 1, 0)
			}
			values = append(values, chunk)
		}
		values = append(values, parquet.ByteArrayValue([]byte(f.Class)), parquet.Int32Value(f.Attempts),
			parquet.ByteArrayValue([]byte(f.Message)), text, parquet.Int64Value(f.TextBytes))
		for _, v := range values {
			v = v.Level(0, v.DefinitionLevel(), col)
			if _, err := columns[col].WriteRowValues([]parquet.Value{v}); err != nil {
				return err
			}
			col++
		}
		if size += int64(len(f.Text)); size >= l.group {
			if err := w.Flush(); err != nil {
				return err
			}
			size = 0
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return w.finish()
}
