package pages

import "encoding/binary"

// runs decodes Parquet's hybrid of run lengths and bit-packed groups of eight
// (levels, dictionary indexes, booleans), one number at a time.
type runs struct {
	data  []byte
	width uint
	run   uint64 // repeats left of value
	value uint32
	group uint64 // bit-packed groups left after the buffered one
	buf   [8]uint32
	at    int // next in buf; 8 if none is buffered
}

func (r *runs) reset(data []byte, width uint) {
	*r = runs{data: data, width: width, at: 8}
}

func (r *runs) next() (uint32, error) {
	for {
		switch {
		case r.at < 8:
			r.at++
			return r.buf[r.at-1], nil
		case r.run > 0:
			r.run--
			return r.value, nil
		case r.group > 0:
			if err := r.unpack(); err != nil {
				return 0, err
			}
		default:
			if err := r.header(); err != nil {
				return 0, err
			}
		}
	}
}

func (r *runs) header() error {
	if r.width == 0 && len(r.data) == 0 {
		// Numbers of no bits are all zero and some writers leave out the runs.
		r.run, r.value = 1<<31, 0
		return nil
	}
	h, n := binary.Uvarint(r.data)
	if n <= 0 {
		return corrupt("a run of numbers ends early")
	}
	r.data = r.data[n:]
	if h&1 == 1 {
		r.group = h >> 1
		return nil
	}
	size := int(r.width+7) / 8
	if len(r.data) < size {
		return corrupt("a run of numbers ends early")
	}
	r.value = 0
	for i := range size {
		r.value |= uint32(r.data[i]) << (8 * i)
	}
	r.data = r.data[size:]
	r.run = h >> 1
	return nil
}

// unpack fills buf from the next group of eight numbers, which is width bytes long.
func (r *runs) unpack() error {
	w := r.width
	if uint(len(r.data)) < w {
		return corrupt("a group of packed numbers ends early")
	}
	if w == 1 {
		b := uint32(r.data[0])
		for i := range r.buf {
			r.buf[i] = b >> i & 1
		}
	} else {
		acc, bits, src := uint64(0), uint(0), r.data
		mask := uint64(1)<<w - 1
		for i := range r.buf {
			for bits < w {
				acc |= uint64(src[0]) << bits
				src = src[1:]
				bits += 8
			}
			r.buf[i] = uint32(acc & mask)
			acc >>= w
			bits -= w
		}
	}
	r.data = r.data[w:]
	r.group--
	r.at = 0
	return nil
}
