// Package pages reads one leaf column of a Parquet row group, value by value,
// in bounded memory, from files that strangers wrote.
//
// It stands in for parquet-go's page reader, which cannot be used on foreign
// files: version 0.32 returns wrong values for good lz4_raw pages, grows memory
// until the process dies on damaged ones, and panics on some pages of no
// values. Footer, schema and Thrift structures are still parquet-go's.
//
// Guarantees:
//   - Memory is the largest page of the column, compressed and uncompressed,
//     plus its dictionary. Levels, dictionary indexes and delta-coded lengths
//     are decoded as they are asked for, never into a slice of their own.
//   - A size that a file declares is checked against the bytes that are there
//     before anything is allocated for it.
//   - Page checksums are verified where the file has them, and a page whose
//     values do not come out even is an error rather than shifted values.
//   - Damage is a *fault.Error of class corrupt_file, a feature that is not
//     read is one of class unsupported_file. Nothing panics.
//
// A column chunk is a dictionary page, if any, then data pages:
//
//	chunk  = [dictionary] data…
//	page   = Thrift header, then
//	  v1     compressed( [len32 repetition] [len32 definition] values )
//	  v2     repetition definition compressed( values )
package pages

import (
	"io"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Chunk describes one column chunk as the footer and the schema have it.
type Chunk struct {
	Kind      parquet.Kind // physical type
	Width     int          // bytes of a FIXED_LEN_BYTE_ARRAY
	MaxDef    int          // highest definition level
	MaxRep    int          // highest repetition level
	Codec     format.CompressionCodec
	NumValues int64 // entries, nulls included
	Offset    int64 // of the first page in the file
	Size      int64 // bytes of all pages, headers included
	Padded    bool  // eight zero bytes may stand behind the values of a page, as fastparquet writes them
}

// Column reads the entries of one column chunk after the other. It belongs to
// one goroutine.
type Column struct {
	// Def and Rep are the levels of the current entry.
	Def, Rep int

	file    io.ReaderAt
	chunk   Chunk
	pos     int64 // of the next page
	end     int64 // of the chunk
	entries int64 // read so far, of the chunk
	left    int64 // entries left in the page
	nulls   int64 // nulls seen in the page
	wantNul int64 // nulls the page header declares, -1 if it does not
	pending bool  // the current entry's value was not asked for yet
	held    bool  // Next gives the current entry again

	rep, def runs
	values   values
	dict     dictionary
	codec    decompressor

	raw  []byte // page as it lies in the file, before it its header
	body []byte // page uncompressed
}

// Open starts a column chunk. fileSize bounds what the chunk may claim.
func (c *Column) Open(file io.ReaderAt, fileSize int64, chunk Chunk) error {
	c.file, c.chunk = file, chunk
	c.pos, c.end = chunk.Offset, chunk.Offset+chunk.Size
	c.entries, c.left, c.nulls = 0, 0, 0
	c.pending, c.held = false, false
	c.values = values{}
	c.wantNul = -1
	c.dict.reset()
	if chunk.Offset < 0 || chunk.Size < 0 || c.end < chunk.Offset || c.end > fileSize {
		return corrupt("a column chunk claims bytes %d to %d of a file of %d", chunk.Offset, c.end, fileSize)
	}
	if chunk.NumValues < 0 {
		return corrupt("a column chunk claims %d values", chunk.NumValues)
	}
	return supported(chunk.Codec)
}

// Next moves to the next entry and sets Def and Rep; io.EOF after the last one.
func (c *Column) Next() error {
	if c.held {
		c.held = false
		return nil
	}
	if c.pending {
		if _, err := c.Value(); err != nil {
			return err
		}
	}
	for c.left == 0 {
		if err := c.endPage(); err != nil {
			return err
		}
		if _, err := c.nextPage(0); err != nil {
			return err
		}
	}
	c.left--
	c.entries++
	c.Rep, c.Def = 0, 0
	if c.chunk.MaxRep > 0 {
		v, err := c.rep.next()
		if err != nil {
			return err
		}
		c.Rep = int(v)
	}
	if c.chunk.MaxDef > 0 {
		v, err := c.def.next()
		if err != nil {
			return err
		}
		c.Def = int(v)
	}
	if c.Rep > c.chunk.MaxRep || c.Def > c.chunk.MaxDef {
		return corrupt("levels %d and %d are above the column's %d and %d", c.Rep, c.Def, c.chunk.MaxRep, c.chunk.MaxDef)
	}
	if c.entries == 1 && c.Rep != 0 {
		return corrupt("a column chunk starts in the middle of a row")
	}
	c.pending = c.Def == c.chunk.MaxDef
	if !c.pending {
		c.nulls++
	}
	return nil
}

// Hold makes the current entry the next one again: the end of a row shows only
// in the first entry of the row after it. Its value must not have been asked for.
func (c *Column) Hold() { c.held = true }

// Null reports whether the current entry has no value.
func (c *Column) Null() bool { return c.Def < c.chunk.MaxDef }

// Value is the current entry's value as little-endian bytes (one byte for a
// boolean). It may be asked for once, only if the entry is not null, and is
// valid until the next call of Next.
func (c *Column) Value() ([]byte, error) {
	c.pending = false
	return c.values.next()
}

// Skip moves n rows ahead, so that Next then reads the first entry of the row
// after them. It may be called where a row ends: after Open, or in a column
// without repetition after any entry. Pages that lie before the target are not read.
func (c *Column) Skip(n int64) error {
	if c.chunk.MaxRep > 0 {
		return c.skipRepeated(n)
	}
	for n > 0 {
		if c.left == 0 {
			if err := c.endPage(); err != nil {
				return err
			}
			skipped, err := c.nextPage(n)
			if err != nil {
				return err
			}
			n -= skipped
			continue
		}
		if err := c.Next(); err != nil {
			return err
		}
		n--
	}
	return nil
}

// skipRepeated counts rows entry by entry: rows may span pages.
func (c *Column) skipRepeated(n int64) error {
	for ; n >= 0; n-- {
		for {
			if err := c.Next(); err != nil {
				return err
			}
			if c.Rep == 0 {
				break
			}
		}
	}
	c.Hold()
	return nil
}

// endPage checks that a page's levels and values came out even; io.EOF if it
// was the last one.
func (c *Column) endPage() error {
	if c.pending {
		if _, err := c.Value(); err != nil {
			return err
		}
	}
	if c.wantNul >= 0 && c.nulls != c.wantNul {
		return corrupt("a page declares %d nulls and holds %d", c.wantNul, c.nulls)
	}
	if !c.values.done() {
		return corrupt("a page holds more values than its levels say")
	}
	c.wantNul, c.nulls = -1, 0
	if c.entries == c.chunk.NumValues {
		return io.EOF
	}
	return nil
}

func corrupt(format string, args ...any) *fault.Error {
	return fault.New(fault.CorruptFile, format, args...)
}

func unsupported(format string, args ...any) *fault.Error {
	return fault.New(fault.UnsupportedFile, format, args...).
		Hinting("write the file again with a common writer (pyarrow, DuckDB, Spark), zstd or snappy compressed")
}
