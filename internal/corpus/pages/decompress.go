package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// supported refuses codecs that decode does not know.
func supported(codec format.CompressionCodec) error {
	switch codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw, format.Lz4:
		return nil
	default:
		return unsupported("a column is compressed with %s, which is not read", codec)
	}
}

var errSize = errors.New("the bytes do not make the size that the page declares")

// The decoder is made for pages that are decoded whole into a buffer of the right size.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
})

// decompressor keeps the state of codecs that have some.
type decompressor struct {
	src    bytes.Reader
	gzip   *gzip.Reader
	brotli *brotli.Reader
}

// decode fills dst, neither more nor less, from src.
func (d *decompressor) decode(codec format.CompressionCodec, dst, src []byte) error {
	switch codec {
	case format.Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return errors.Join(err, errSize)
		}
		_, err := snappy.Decode(dst, src)
		return err
	case format.Lz4Raw:
		return lz4Block(dst, src)
	case format.Lz4:
		if lz4Framed(dst, src) {
			return nil
		}
		return lz4Block(dst, src)
	case format.Zstd:
		dec, err := zstdDecoder()
		if err != nil {
			return err
		}
		out, err := dec.DecodeAll(src, dst[:0:len(dst)])
		if err == nil && len(out) != len(dst) {
			return errSize
		}
		return err
	case format.Gzip:
		d.src.Reset(src)
		if d.gzip == nil {
			d.gzip = new(gzip.Reader)
		}
		if err := d.gzip.Reset(&d.src); err != nil {
			return err
		}
		return exactly(d.gzip, dst)
	default: // format.Brotli, the only one left that supported lets in
		d.src.Reset(src)
		if d.brotli == nil {
			d.brotli = new(brotli.Reader)
		}
		if err := d.brotli.Reset(&d.src); err != nil {
			return err
		}
		return exactly(d.brotli, dst)
	}
}

func lz4Block(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err == nil && n != len(dst) {
		return errSize
	}
	return err
}

// lz4Framed decodes the old LZ4 codec as Java writers fill it: blocks behind their
// uncompressed and compressed sizes, big-endian. Other writers put one bare block there,
// and nothing but the sizes tells.
func lz4Framed(dst, src []byte) bool {
	for len(src) >= 8 {
		full, packed := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if uint64(full) > uint64(len(dst)) || uint64(packed) > uint64(len(src)) || lz4Block(dst[:full], src[:packed]) != nil {
			return false
		}
		dst, src = dst[full:], src[packed:]
	}
	return len(dst) == 0 && len(src) == 0
}

// exactly reads dst full and makes sure that nothing follows.
func exactly(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return errSize
	case err == io.EOF:
		return nil
	default:
		return err
	}
}
