package pages

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"

	"localembed/internal/corpus/wire"
	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// A page header is tens of bytes, unless it carries the smallest and the
	// largest text of the page: some writers do not cut them.
	headGuess = 512
	headMax   = 1 << 30

	// A page may not claim more than maxRatio times its compressed size once it
	// is larger than ratioFloor: below it, a text that repeats ten thousand
	// times is common and does no harm.
	maxRatio   = 1000
	ratioFloor = 1 << 20

	// A buffer above this size is given back when the next page needs a quarter of it.
	keepBytes = 8 << 20
)

var testOnlyNoChecksums bool

// Exploding reports whether a claimed size is out of all proportion to the
// bytes that are there.
func Exploding(uncompressed, compressed int64) bool {
	return uncompressed > ratioFloor && uncompressed/maxRatio > compressed
}

// nextPage reads pages up to and including the next data page. A data page of
// at most skip entries is jumped over instead, and their number returned.
func (c *Column) nextPage(skip int64) (skipped int64, err error) {
	for {
		var h format.PageHeader
		size, err := c.header(&h)
		if err != nil {
			return 0, err
		}
		c.pos += size
		body := int64(h.CompressedPageSize)
		switch {
		case h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || c.pos+body > c.end:
			return 0, corrupt("a page claims %d bytes where %d are left of its column chunk", body, c.end-c.pos)
		case Exploding(int64(h.UncompressedPageSize), body):
			return 0, corrupt("a page claims to hold %d bytes in %d", h.UncompressedPageSize, body)
		}
		isData := h.Type == format.DataPage || h.Type == format.DataPageV2
		if isData {
			n := int64(numValues(&h))
			if n < 0 || n > c.chunk.NumValues-c.entries {
				return 0, corrupt("a page claims %d values where %d are left of its column chunk", n, c.chunk.NumValues-c.entries)
			}
			if n > 0 && n <= skip {
				c.pos += body
				c.entries += n
				c.values = values{}
				return n, nil
			}
		}
		if !isData && h.Type != format.DictionaryPage {
			c.pos += body // an index page, or a kind that is not known yet
			continue
		}
		if err := c.load(body, h.CRC); err != nil {
			return 0, err
		}
		c.pos += body
		switch h.Type {
		case format.DictionaryPage:
			if err := c.loadDictionary(&h); err != nil {
				return 0, err
			}
		case format.DataPage:
			return 0, c.startV1(&h)
		default:
			return 0, c.startV2(&h)
		}
	}
}

func numValues(h *format.PageHeader) int32 {
	if h.Type == format.DataPage {
		return h.DataPageHeader.V.NumValues
	}
	return h.DataPageHeaderV2.V.NumValues
}

// header decodes the page header at c.pos and returns its size. It reads into the
// page's buffer, and texts of megabytes in a header's statistics not at all.
func (c *Column) header(h *format.PageHeader) (int64, error) {
	c.raw = c.raw[:0]
	for at := c.pos; ; {
		n := min(headGuess+int64(len(c.raw)), c.end-at)
		if n <= 0 && at == c.pos {
			return 0, corrupt("a column chunk ends after %d of its %d values", c.entries, c.chunk.NumValues)
		}
		had := len(c.raw)
		c.raw = slices.Grow(c.raw, int(n))[:had+int(n)]
		if err := c.readAt(c.raw[had:], at); err != nil {
			return 0, err
		}
		at += n
		size, err := wire.StructSize(c.raw)
		if lacks := int64(size - len(c.raw)); errors.Is(err, io.ErrUnexpectedEOF) && lacks <= min(c.end-at, headMax) {
			var skip int
			c.raw, skip = wire.Shorten(c.raw)
			at += int64(skip)
			continue
		}
		if err != nil {
			return 0, corrupt("a page header does not hold together").Because(err)
		}
		whole := at - c.pos - int64(len(c.raw)-size)
		if err := thrift.Unmarshal(&thrift.CompactProtocol{}, c.raw[:size], h); err != nil {
			return 0, corrupt("a page header does not hold together").Because(err)
		}
		missing := h.Type == format.DataPage && !h.DataPageHeader.Valid ||
			h.Type == format.DataPageV2 && !h.DataPageHeaderV2.Valid ||
			h.Type == format.DictionaryPage && !h.DictionaryPageHeader.Valid
		if missing {
			return 0, corrupt("a page header does not hold together")
		}
		return whole, nil
	}
}

// load reads the page's bytes as they lie in the file.
func (c *Column) load(size int64, crc int32) error {
	c.raw = grow(c.raw, int(size))
	if err := c.readAt(c.raw, c.pos); err != nil {
		return err
	}
	if crc != 0 && !testOnlyNoChecksums && crc32.ChecksumIEEE(c.raw) != uint32(crc) {
		return corrupt("a page's checksum does not match its bytes")
	}
	return nil
}

func (c *Column) readAt(b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	n, err := c.file.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fault.New(fault.TruncatedFile, "the file ends at byte %d, within a page", at+int64(n)).
			Hinting("copy the file again; it became shorter while it was read")
	}
	return err
}

// uncompress makes size bytes of src; the result is valid until the next page.
func (c *Column) uncompress(src []byte, size int) ([]byte, error) {
	if c.chunk.Codec == format.Uncompressed {
		if len(src) != size {
			return nil, corrupt("a page claims %d bytes and holds %d", size, len(src))
		}
		return src, nil
	}
	c.body = grow(c.body, size)
	if size == 0 {
		return c.body, nil
	}
	if err := c.codec.decode(c.chunk.Codec, c.body, src); err != nil {
		return nil, corrupt("a page cannot be uncompressed (%s)", c.chunk.Codec).Because(err)
	}
	return c.body, nil
}

func (c *Column) startV1(h *format.PageHeader) error {
	d := &h.DataPageHeader.V
	data, err := c.uncompress(c.raw, int(h.UncompressedPageSize))
	if err != nil {
		return err
	}
	if c.chunk.MaxRep > 0 {
		if data, err = levelsV1(&c.rep, data, c.chunk.MaxRep, d.RepetitionLevelEncoding); err != nil {
			return err
		}
	}
	if c.chunk.MaxDef > 0 {
		if data, err = levelsV1(&c.def, data, c.chunk.MaxDef, d.DefinitionLevelEncoding); err != nil {
			return err
		}
	}
	c.left = int64(d.NumValues)
	return c.startValues(d.Encoding, data)
}

func levelsV1(r *runs, data []byte, highest int, enc format.Encoding) (rest []byte, err error) {
	if enc != format.RLE {
		return nil, unsupported("a page has levels in the encoding %s, which is not read", enc)
	}
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, corrupt("a page's levels reach past its end")
	}
	n := int(binary.LittleEndian.Uint32(data))
	r.reset(data[4:4+n], levelWidth(highest))
	return data[4+n:], nil
}

func levelWidth(highest int) uint { return uint(bits.Len(uint(highest))) }

func (c *Column) startV2(h *format.PageHeader) error {
	d := &h.DataPageHeaderV2.V
	rep, def := int(d.RepetitionLevelsByteLength), int(d.DefinitionLevelsByteLength)
	rest := int(h.UncompressedPageSize) - rep - def
	if rep < 0 || def < 0 || rep+def > len(c.raw) || rest < 0 {
		return corrupt("a page's levels reach past its end")
	}
	c.rep.reset(c.raw[:rep], levelWidth(c.chunk.MaxRep))
	c.def.reset(c.raw[rep:rep+def], levelWidth(c.chunk.MaxDef))
	data := c.raw[rep+def:]
	if compressed := !d.IsCompressed.Valid || d.IsCompressed.V; compressed {
		var err error
		if data, err = c.uncompress(data, rest); err != nil {
			return err
		}
	} else if len(data) != rest {
		return corrupt("a page claims %d bytes and holds %d", rest, len(data))
	}
	c.left = int64(d.NumValues)
	if c.chunk.MaxRep == 0 {
		// Writers disagree on whether an empty list is a null.
		c.wantNul = int64(d.NumNulls)
	}
	return c.startValues(d.Encoding, data)
}

func (c *Column) startValues(enc format.Encoding, data []byte) error {
	c.nulls = 0
	return c.values.start(&c.chunk, enc, data, &c.dict)
}

func (c *Column) loadDictionary(h *format.PageHeader) error {
	d := &h.DictionaryPageHeader.V
	if d.Encoding != format.Plain && d.Encoding != plainDictionary {
		return unsupported("a dictionary has the encoding %s, which is not read", d.Encoding)
	}
	data, err := c.uncompress(c.raw, int(h.UncompressedPageSize))
	if err != nil {
		return err
	}
	return c.dict.load(data, int(d.NumValues), c.chunk.Kind, fixedWidth(&c.chunk))
}

// fixedWidth is the size in bytes of a value in a plain page, 0 if it varies.
func fixedWidth(c *Chunk) int {
	switch c.Kind {
	case parquet.Int32, parquet.Float:
		return 4
	case parquet.Int64, parquet.Double:
		return 8
	case parquet.Int96:
		return 12
	case parquet.FixedLenByteArray:
		return c.Width
	default:
		return 0
	}
}

// grow makes b n bytes long. What b held is lost.
func grow(b []byte, n int) []byte {
	if cap(b) < n || cap(b) > keepBytes && n < cap(b)/4 {
		return make([]byte, n)
	}
	return b[:n]
}
