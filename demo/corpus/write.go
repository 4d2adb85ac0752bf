package main

import (
	"io"
	"iter"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/publish"
)

// rowGroup keeps the program's memory flat for a corpus of any size, and gives
// a corpus of 100 000 texts several row groups, as real ones have.
const rowGroup = 16_384

// write publishes rows as a Parquet file and says how many there were. Should
// it be interrupted, there is no file rather than a short one.
func write(path string, rows iter.Seq[document]) (n int, err error) {
	err = publish.File(vfs.Default, path, func(w io.Writer) error {
		out := parquet.NewGenericWriter[document](w,
			parquet.Compression(&parquet.Zstd),
			parquet.MaxRowsPerRowGroup(rowGroup))
		for d := range rows {
			if _, err := out.Write([]document{d}); err != nil {
				return err
			}
			n++
		}
		return out.Close()
	})
	return n, err
}
