package pages

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// plainDictionary is what writers of format 1 call RLE_DICTIONARY in a data page
// and PLAIN in a dictionary page. parquet-go deprecates its name for it.
const plainDictionary format.Encoding = 2

// layout is how the values of a page are stored.
type layout int

const (
	layoutNone    layout = iota // no page yet
	layoutFixed                 // values of one width, one after the other
	layoutPrefix                // each behind its length
	layoutBits                  // booleans, eight to a byte
	layoutRuns                  // booleans as runs
	layoutIndex                 // places in the dictionary
	layoutPacked                // integers as packed differences
	layoutLengths               // all lengths, then all bytes
	layoutShared                // lengths shared with the value before, then layoutLengths
	layoutStreams               // first bytes of all values, then all second bytes …
)

// values decodes the values of one page, one at a time.
type values struct {
	layout layout
	data   []byte // what is left; the whole page for layoutBits and layoutStreams
	width  int    // bytes of a fixed-width value
	padded bool   // zero bytes may follow
	at     int    // values read, for layoutBits and layoutStreams
	bits   runs
	nums   deltas // integers, or lengths
	shared deltas // lengths shared with the value before
	dict   *dictionary
	buf    []byte // a value put together; for layoutShared the value before
}

func (v *values) start(c *Chunk, enc format.Encoding, data []byte, dict *dictionary) error {
	isBytes := c.Kind == parquet.ByteArray
	isFLBA := c.Kind == parquet.FixedLenByteArray
	isInt := c.Kind == parquet.Int32 || c.Kind == parquet.Int64
	*v = values{data: data, width: fixedWidth(c), padded: c.Padded, dict: dict, buf: v.buf[:0]}
	switch {
	case enc == format.Plain && c.Kind == parquet.Boolean:
		v.layout = layoutBits
	case enc == format.Plain && isBytes:
		v.layout = layoutPrefix
	case enc == format.Plain:
		v.layout = layoutFixed
	case enc == format.RLE && c.Kind == parquet.Boolean:
		v.layout = layoutRuns
		if len(data) == 0 {
			v.bits.reset(nil, 1)
			return nil
		}
		rest, err := levelsV1(&v.bits, data, 1, format.RLE)
		v.data = rest
		return err
	case enc == plainDictionary || enc == format.RLEDictionary:
		v.layout = layoutIndex
		if len(data) == 0 { // a page of nulls
			v.bits.reset(nil, 1)
			return nil
		}
		if data[0] > 32 {
			return corrupt("a page has dictionary places of %d bits", data[0])
		}
		v.bits.reset(data[1:], uint(data[0]))
	case enc == format.DeltaBinaryPacked && isInt:
		v.layout = layoutPacked
		return v.nums.start(data)
	case enc == format.DeltaLengthByteArray && isBytes:
		v.layout = layoutLengths
		return v.startLengths(data)
	case enc == format.DeltaByteArray && (isBytes || isFLBA):
		v.layout = layoutShared
		if len(data) == 0 {
			return nil
		}
		if err := v.shared.start(data); err != nil {
			return err
		}
		rest, err := v.shared.after()
		if err != nil {
			return err
		}
		return v.startLengths(rest)
	case enc == format.ByteStreamSplit && v.width > 0:
		v.layout = layoutStreams
		if len(data)%v.width != 0 {
			return corrupt("a page of %d bytes cannot hold values of %d bytes", len(data), v.width)
		}
	default:
		return unsupported("a page of %s values has the encoding %s, which is not read", c.Kind, enc)
	}
	return nil
}

func (v *values) startLengths(data []byte) (err error) {
	if len(data) == 0 {
		return nil
	}
	if err := v.nums.start(data); err != nil {
		return err
	}
	v.data, err = v.nums.after()
	return err
}

// next is the next value; valid until the one after it is asked for.
func (v *values) next() ([]byte, error) {
	switch v.layout {
	case layoutFixed:
		return v.take(uint64(v.width))
	case layoutPrefix:
		n, err := v.take(4)
		if err != nil {
			return nil, err
		}
		return v.take(uint64(binary.LittleEndian.Uint32(n)))
	case layoutBits:
		if v.at>>3 >= len(v.data) {
			return nil, errValuesEnd()
		}
		bit := v.data[v.at>>3] >> (v.at & 7) & 1
		v.at++
		v.buf = append(v.buf[:0], bit)
		return v.buf, nil
	case layoutRuns:
		b, err := v.bits.next()
		v.buf = append(v.buf[:0], byte(b))
		return v.buf, err
	case layoutIndex:
		i, err := v.bits.next()
		if err != nil {
			return nil, err
		}
		return v.dict.at(i)
	case layoutPacked:
		n, err := v.nums.next()
		if err != nil {
			return nil, err
		}
		v.buf = binary.LittleEndian.AppendUint64(v.buf[:0], uint64(n))[:v.width]
		return v.buf, nil
	case layoutLengths:
		n, err := v.nums.next()
		if err != nil {
			return nil, err
		}
		return v.take(uint64(n))
	case layoutShared:
		return v.nextShared()
	case layoutStreams:
		n := len(v.data) / v.width
		if v.at >= n {
			return nil, errValuesEnd()
		}
		v.buf = v.buf[:0]
		for i := range v.width {
			v.buf = append(v.buf, v.data[i*n+v.at])
		}
		v.at++
		return v.buf, nil
	default:
		return nil, corrupt("a value is asked for before its page")
	}
}

func (v *values) nextShared() ([]byte, error) {
	shared, err := v.shared.next()
	if err != nil {
		return nil, err
	}
	n, err := v.nums.next()
	if err != nil {
		return nil, err
	}
	if shared < 0 || shared > int64(len(v.buf)) {
		return nil, corrupt("a value shares %d bytes with one of %d", shared, len(v.buf))
	}
	own, err := v.take(uint64(n))
	if err != nil {
		return nil, err
	}
	v.buf = append(v.buf[:shared], own...)
	if v.width > 0 && len(v.buf) != v.width {
		return nil, corrupt("a value has %d bytes where the column has %d", len(v.buf), v.width)
	}
	return v.buf, nil
}

func (v *values) take(n uint64) ([]byte, error) {
	if n > uint64(len(v.data)) {
		return nil, errValuesEnd()
	}
	b := v.data[:n:n]
	v.data = v.data[n:]
	return b, nil
}

// done reports whether the page's values are used up, as far as its layout tells.
func (v *values) done() bool {
	switch v.layout {
	case layoutFixed, layoutPrefix:
		return len(v.data) == 0 || v.padded && len(v.data) <= 8 && len(bytes.Trim(v.data, "\x00")) == 0
	case layoutLengths, layoutShared:
		return len(v.data) == 0 && v.nums.left == 0
	case layoutPacked:
		return v.nums.left == 0
	case layoutStreams:
		return v.at*v.width == len(v.data)
	case layoutBits:
		return (v.at+7)/8 == len(v.data)
	default:
		return true
	}
}

func errValuesEnd() error { return corrupt("a page's values end early") }

// dictionary holds the distinct values of a column chunk.
type dictionary struct {
	data  []byte
	ends  []uint32 // of each value behind its length; nil for values of one width
	width int
	n     int
}

func (d *dictionary) reset() { d.data, d.ends, d.n = d.data[:0], d.ends[:0], 0 }

// load copies a plain page of n values.
func (d *dictionary) load(page []byte, n int, kind parquet.Kind, width int) error {
	d.reset()
	if kind == parquet.Boolean {
		return unsupported("a column of booleans has a dictionary, which is not read")
	}
	d.data = append(slices.Grow(grow(d.data, 0), len(page)), page...)
	d.width, d.n = width, n
	if width > 0 {
		if n < 0 || int64(n)*int64(width) != int64(len(page)) {
			return corrupt("a dictionary of %d bytes claims %d values of %d bytes", len(page), n, width)
		}
		return nil
	}
	at := 0
	for range n {
		if len(page)-at < 4 {
			return corrupt("a dictionary ends early")
		}
		size := int(binary.LittleEndian.Uint32(page[at:]))
		if size > len(page)-at-4 {
			return corrupt("a dictionary ends early")
		}
		at += 4 + size
		d.ends = append(d.ends, uint32(at))
	}
	return nil
}

func (d *dictionary) at(i uint32) ([]byte, error) {
	if int64(i) >= int64(d.n) {
		return nil, corrupt("a page names value %d of a dictionary of %d", i, d.n)
	}
	if d.width > 0 {
		return d.data[int(i)*d.width:][:d.width:d.width], nil
	}
	start := uint32(0)
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.data[start+4 : d.ends[i] : d.ends[i]], nil
}
