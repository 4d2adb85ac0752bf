package models

import "slices"

// head is what turns hidden states into vectors: modules for each token, the
// pooling, modules for each vector, the cut to the first components and
// normalization, always in fp32.
type head struct {
	tokens    []step
	pooling   []string // modes; poolNone alone where the graph pools itself
	skip      int      // tokens in front that the pooling leaves out
	vectors   []step
	normalize bool
	width     int // components of a hidden state
	dims      int // components of a vector
}

// one is the token of each text that alone decides its vector, if there is one.
func (h head) one() place {
	switch {
	case h.skip > 0 || len(h.pooling) != 1:
		return all
	case h.pooling[0] == poolCLS:
		return first
	case h.pooling[0] == poolLast:
		return last
	}
	return all
}

// pooled is the width of a pooled vector.
func (h head) pooled() int { return len(h.pooling) * outOf(h.tokens, h.width) }

// whole is the width of a vector before the cut.
func (h head) whole() int { return outOf(h.vectors, h.pooled()) }

func outOf(steps []step, width int) int {
	if len(steps) > 0 {
		return steps[len(steps)-1].out()
	}
	return width
}

// add appends the head to the value x: [items, length, width], or
// [items, width] for poolNone, of type float. mask is an integer input
// [items, length], "" where all texts have one length. The result is the
// value named output.
func (h head) add(n *nodes, x, mask, output string) error {
	var err error
	if len(h.tokens) > 0 {
		shape := n.op("Slice", []string{n.op("Shape", []string{x}), n.ints(0), n.ints(2)})
		x = n.op("Reshape", []string{x, n.ints(-1, int64(h.width))})
		for _, s := range h.tokens {
			if x, err = s.add(n, x); err != nil {
				return err
			}
		}
		width := n.ints(int64(outOf(h.tokens, h.width)))
		x = n.op("Reshape", []string{x, n.op("Concat", []string{shape, width}, attrInt("axis", 0))})
	}
	if !slices.Equal(h.pooling, []string{poolNone}) {
		p := pooler{n: n, x: x, width: outOf(h.tokens, h.width), skip: h.skip}
		x = p.add(h.pooling, mask)
	}
	for _, s := range h.vectors {
		if x, err = s.add(n, x); err != nil {
			return err
		}
	}
	if h.dims < h.whole() {
		x = n.op("Slice", []string{x, n.ints(0), n.ints(int64(h.dims)), n.ints(1)})
	}
	if h.normalize {
		if x, err = (normalize{h.dims}).add(n, x); err != nil {
			return err
		}
	}
	n.name(x, output)
	n.output(output, h.dims)
	return nil
}
