package checkpoint

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"localembed/internal/sortpack"
)

// Plan is the batch plan of a window as it is kept: positions of documents in
// the window, batch by batch, in the order in which they run. What a batch holds never
// changes once a plan is put, so that a resumed run repeats the same batches.
//
//	version uvarint  sortpack version uvarint  tokens, items, cells, min_tokens uvarint
//	batches uvarint, then per batch: documents uvarint, positions as zigzag deltas
type Plan struct {
	Limits  sortpack.Limits
	Batches [][]int32
}

const planVersion = 1

func (p Plan) encode() []byte {
	var b []byte
	for _, n := range []int{planVersion, sortpack.Version, p.Limits.Tokens, p.Limits.Items, p.Limits.Cells, p.Limits.MinTokens, len(p.Batches)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	last := int64(0)
	for _, docs := range p.Batches {
		b = binary.AppendUvarint(b, uint64(len(docs)))
		for _, d := range docs {
			b = binary.AppendVarint(b, int64(d)-last)
			last = int64(d)
		}
	}
	return b
}

var errPlan = errors.New("a plan cannot be read")

func decodePlan(b []byte) (p Plan, err error) {
	next := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<62 {
			err, b = errPlan, nil
			return 0
		}
		b = b[size:]
		return int(n)
	}
	if version := next(); err == nil && version != planVersion {
		return p, errPlan
	}
	next() // the sortpack version tells a reader which rule made the plan; any can be run
	p.Limits = sortpack.Limits{Tokens: next(), Items: next(), Cells: next(), MinTokens: next()}
	last := int64(0)
	for n := next(); n > 0 && err == nil; n-- {
		size := next()
		if size > len(b) { // each position takes a byte or more
			return p, errPlan
		}
		docs := make([]int32, size)
		for i := range docs {
			delta, size := binary.Varint(b)
			last += delta
			if size <= 0 || last < 0 || last > 1<<31-1 {
				return p, errPlan
			}
			b, docs[i] = b[size:], int32(last)
		}
		p.Batches = append(p.Batches, docs)
	}
	if err == nil && len(b) > 0 {
		err = errPlan
	}
	return p, err
}

// Plan returns the plan of a window, if one was put and the window is not
// published yet. Positions are below the number of documents.
func (s *Store) Plan(window [32]byte, documents int) (Plan, bool, error) {
	v, ok, err := s.get(tagged(tagPlan, window))
	if err != nil {
		return Plan{}, false, s.wrap(err)
	}
	if !ok {
		return Plan{}, false, nil
	}
	p, err := decodePlan(v)
	for _, docs := range p.Batches {
		if len(docs) == 0 || int(slices.Max(docs)) >= documents {
			err = errPlan
		}
	}
	if err != nil {
		return Plan{}, false, s.corrupt("window %x: %v", window, err)
	}
	return p, true, nil
}

// PutPlan makes a window's plan durable. Its first batch may run only after that.
func (s *Store) PutPlan(window [32]byte, p Plan) error {
	return s.write(func(w *pebble.Batch) error { return w.Set(tagged(tagPlan, window), p.encode(), nil) })
}
