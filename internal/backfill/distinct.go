package backfill

import (
	"bufio"
	"bytes"
	"container/heap"
	"errors"
	"io"
	"os"
	"slices"

	"localembed/internal/key"
)

// short is the part of a content key that distinct compares: 128 bits of a hash,
// of which a billion have a chance of 1 in 10^21 to hold two equal ones.
type short [16]byte

// distinct counts the distinct content keys of a whole job in little memory: keys
// are gathered, sorted and spilled in runs to a temporary file, which are merged
// to count them. The file has no name, so that it is gone with the process.
type distinct struct {
	buf  []short
	file *os.File // nil until something is spilled
	dir  string
	runs []int // keys in each run
}

// distinctRun is how many keys are sorted in memory, 16 bytes each. It is a
// variable so that tests can spill.
var distinctRun = 1 << 17

func newDistinct(dir string) *distinct { return &distinct{dir: dir} }

// add counts the keys of some documents in.
func (d *distinct) add(keys []key.Key, docs []int32) error {
	for _, doc := range docs {
		d.buf = append(d.buf, short(keys[doc][:16]))
		if len(d.buf) >= distinctRun {
			if err := d.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *distinct) spill() error {
	d.tidy()
	if d.file == nil {
		f, err := os.CreateTemp(d.dir, "keys-*.tmp")
		if err != nil {
			return err
		}
		d.file = f
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(d.file, 1<<20)
	for i := range d.buf {
		if _, err := w.Write(d.buf[i][:]); err != nil {
			return err
		}
	}
	d.runs = append(d.runs, len(d.buf))
	d.buf = d.buf[:0]
	return w.Flush()
}

func (d *distinct) tidy() {
	slices.SortFunc(d.buf, func(a, b short) int { return bytes.Compare(a[:], b[:]) })
	d.buf = slices.Compact(d.buf)
}

// count is the number of distinct keys added so far.
func (d *distinct) count() (int64, error) {
	if d.file == nil {
		d.tidy()
		return int64(len(d.buf)), nil
	}
	if len(d.buf) > 0 {
		if err := d.spill(); err != nil {
			return 0, err
		}
	}
	var h keyRuns
	offset := int64(0)
	for _, n := range d.runs {
		size := int64(n) * 16
		run := &keyRun{r: bufio.NewReaderSize(io.NewSectionReader(d.file, offset, size), 4<<10)}
		offset += size
		if err := run.next(); err != nil {
			return 0, err
		}
		h = append(h, run)
	}
	heap.Init(&h)
	count, last := int64(0), short{}
	for len(h) > 0 {
		if count == 0 || h[0].key != last {
			count, last = count+1, h[0].key
		}
		switch err := h[0].next(); {
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
		case err != nil:
			return 0, err
		default:
			heap.Fix(&h, 0)
		}
	}
	return count, nil
}

func (d *distinct) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
}

// keyRun is a sorted run being read, keyRuns a heap of them.
type keyRun struct {
	r   *bufio.Reader
	key short
}

func (r *keyRun) next() error {
	_, err := io.ReadFull(r.r, r.key[:])
	return err
}

type keyRuns []*keyRun

func (h keyRuns) Len() int           { return len(h) }
func (h keyRuns) Less(i, j int) bool { return bytes.Compare(h[i].key[:], h[j].key[:]) < 0 }
func (h keyRuns) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *keyRuns) Push(x any)        { *h = append(*h, x.(*keyRun)) }
func (h *keyRuns) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
