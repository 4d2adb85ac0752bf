package pages

import "encoding/binary"

// deltas decodes integers stored as bit-packed differences, one at a time:
//
//	header  block size, miniblocks a block, number of integers, the first one
//	block   smallest difference, a bit width per miniblock, miniblocks
type deltas struct {
	data  []byte
	mini  int // integers a miniblock
	minis int // miniblocks a block
	left  uint64

	first  bool
	value  uint64
	base   uint64 // smallest difference of the block
	widths []byte // of the block's miniblocks not begun
	bytes  []byte // of the miniblock
	in     int    // integers left in the miniblock
	width  uint
	bit    int // next bit of the miniblock
}

// maxBlock is far above the 128 to 4096 integers that writers put in a block.
const maxBlock = 1 << 20

func (d *deltas) start(data []byte) error {
	*d = deltas{data: data, first: true}
	block, ok1 := d.uvarint()
	minis, ok2 := d.uvarint()
	count, ok3 := d.uvarint()
	first, ok4 := d.uvarint()
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return corrupt("packed integers end early")
	}
	if block == 0 || block > maxBlock || minis == 0 || block%minis != 0 || block/minis%8 != 0 {
		return corrupt("packed integers claim blocks of %d in %d parts", block, minis)
	}
	// An integer needs no bits where all differences are equal, so the bytes
	// bound the count only by way of a block's own few bytes.
	if count > 0 && (count-1)/block > uint64(len(d.data)) {
		return corrupt("%d bytes claim to hold %d integers", len(d.data), count)
	}
	d.mini, d.minis, d.left, d.value = int(block/minis), int(minis), count, unzigzag(first)
	return nil
}

func unzigzag(u uint64) uint64 { return u>>1 ^ -(u & 1) }

func (d *deltas) uvarint() (uint64, bool) {
	u, n := binary.Uvarint(d.data)
	if n <= 0 {
		return 0, false
	}
	d.data = d.data[n:]
	return u, true
}

func (d *deltas) next() (int64, error) {
	if d.left == 0 {
		return 0, errValuesEnd()
	}
	d.left--
	if d.first {
		d.first = false
		return int64(d.value), nil
	}
	if d.in == 0 {
		if err := d.nextMini(); err != nil {
			return 0, err
		}
	}
	d.in--
	d.value += d.base + d.unpack()
	return int64(d.value), nil
}

func (d *deltas) nextMini() error {
	if len(d.widths) == 0 {
		u, ok := d.uvarint()
		if !ok || len(d.data) < d.minis {
			return corrupt("packed integers end early")
		}
		d.base = unzigzag(u)
		d.widths, d.data = d.data[:d.minis], d.data[d.minis:]
	}
	w := int(d.widths[0])
	d.widths = d.widths[1:]
	size := d.mini / 8 * w
	if w > 64 || size > len(d.data) {
		return corrupt("packed integers end early")
	}
	d.bytes, d.data = d.data[:size], d.data[size:]
	d.in, d.width, d.bit = d.mini, uint(w), 0
	return nil
}

// unpack reads the next width bits, lowest first.
func (d *deltas) unpack() uint64 {
	v := uint64(0)
	for got := uint(0); got < d.width; {
		b := uint64(d.bytes[d.bit>>3]) >> (d.bit & 7)
		n := min(uint(8-d.bit&7), d.width-got)
		v |= (b & (1<<n - 1)) << got
		got += n
		d.bit += int(n)
	}
	return v
}

// after is what follows the integers. It walks a copy, so that d still has all of them.
func (d *deltas) after() ([]byte, error) {
	w := *d
	for w.left > 0 {
		if w.first {
			w.first = false
			w.left--
			continue
		}
		if err := w.nextMini(); err != nil {
			return nil, err
		}
		w.left -= min(w.left, uint64(w.in))
	}
	return w.data, nil
}
