package models

import (
	"math"
	"slices"
	"strings"

	"localembed/internal/fault"
)

// Poolings by their names in a recipe, in the order in which the old booleans of
// a configuration are joined.
const (
	poolCLS      = "cls"
	poolMax      = "max"
	poolMean     = "mean"
	poolMeanSqrt = "mean_sqrt_len_tokens" // the sum over the square root of the count
	poolWeighted = "weightedmean"         // the n-th token weighs n
	poolLast     = "lasttoken"
	poolNone     = "none" // the graph's output is a vector already
)

var poolModes = []string{poolCLS, poolMax, poolMean, poolMeanSqrt, poolWeighted, poolLast}

// parsePooling reads a pooling as a recipe and --pooling spell it: one mode, or
// several joined by + in the order of their parts of the vector.
func parsePooling(s string) ([]string, error) {
	modes := strings.Split(s, "+")
	for _, m := range modes {
		if !slices.Contains(poolModes, m) {
			return nil, fault.New(fault.Usage, "pooling %q is not supported", s).
				Hinting("use %s, or several of them joined by +", strings.Join(poolModes, ", "))
		}
	}
	return modes, nil
}

// minCount keeps a text without tokens from dividing by 0: it has the vector 0,
// as with sentence-transformers.
const minCount = 1e-9

// pooler turns the hidden states of a text into one vector.
//
// It sums with MatMul rather than with the Reduce operators. Those of ONNX
// Runtime choose an order of summation by the shape of the whole batch, so that
// a vector's last bits would depend on how many texts it was computed with.
// MatMul has no axes either, which moved from attribute to input between
// versions of the operator set, so that one head fits every graph.
type pooler struct {
	n     *nodes
	x     string // [items, length, width]
	width int
	skip  int // tokens in front that are left out

	size   string // tokens of x, int64 [1]
	row    string // 1 for each token that counts, else 0: [items, 1, length] or [1, length]
	column string // the same, [items or 1, length, 1]; only where some do not count
	count  string // of tokens that count, fp32, [items, 1, 1] or of one element
	whole  string // of all tokens, like count
	padded bool
	sum    string // [items, width], once it was needed
}

// add appends a pooling; the result is [items, modes × width]. mask is an
// integer input [items, length], "" where all texts have one length.
func (p *pooler) add(modes []string, mask string) string {
	n := p.n
	p.padded = mask != ""
	p.size = n.op("Gather", []string{n.op("Shape", []string{p.x}), n.ints(1)})
	if p.padded {
		p.row = n.op("Reshape", []string{n.float32(mask), n.ints(0, 1, -1)})
		p.turn()
	} else {
		p.row = n.op("Expand", []string{n.float(1), n.op("Concat", []string{n.ints(1), p.size}, attrInt("axis", 0))})
		p.count = n.float32(p.size)
	}
	p.whole = p.count
	if p.skip > 0 {
		behind := n.op("Greater", []string{p.upTo(0), n.scalarInt(int64(p.skip - 1))})
		p.row = n.op("Mul", []string{p.row, n.float32(behind)})
		p.turn()
	}
	var parts []string
	for _, mode := range modes {
		parts = append(parts, p.flat(p.mode(mode)))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return n.op("Concat", parts, attrInt("axis", 1))
}

// turn makes column and count of row.
func (p *pooler) turn() {
	items := int64(1)
	if p.padded {
		items = 0 // as row has it
	}
	p.column = p.n.op("Reshape", []string{p.row, p.n.ints(items, -1, 1)})
	p.count = p.n.op("MatMul", []string{p.row, p.column})
}

// upTo counts along a text from the given number on, int64 [length].
func (p *pooler) upTo(from int64) string {
	n := p.n
	to := n.op("Squeeze", []string{n.op("Add", []string{p.size, n.ints(from)})})
	return n.op("Range", []string{n.scalarInt(from), to, n.scalarInt(1)})
}

// mode is one pooling, of any shape with items × width numbers.
func (p *pooler) mode(mode string) string {
	n := p.n
	switch mode {
	case poolCLS:
		if p.skip == 0 {
			return n.op("Gather", []string{p.x, n.scalarInt(0)}, attrInt("axis", 1))
		}
		return p.firstBehind()
	case poolLast:
		return p.last()
	case poolMax:
		return p.max()
	case poolWeighted:
		weights := n.op("Mul", []string{p.row, n.float32(p.upTo(1))})
		ones := n.op("Reshape", []string{n.op("Expand", []string{n.float(1), p.size}), n.ints(-1, 1)})
		total := n.op("MatMul", []string{weights, ones})
		return n.op("Div", []string{n.op("MatMul", []string{weights, p.x}), p.atLeast(total)})
	}
	if p.sum == "" {
		p.sum = p.flat(n.op("MatMul", []string{p.row, p.x}))
	}
	count := p.count
	if p.column != "" {
		count = n.op("Reshape", []string{p.atLeast(count), n.ints(-1, 1)})
	}
	if mode == poolMeanSqrt {
		count = n.op("Sqrt", []string{count})
	}
	return n.op("Div", []string{p.sum, count})
}

// max is the largest of each component. A pooling operator needs no axes; what
// is not a number would not always come through it, so the sum times 0 is added.
func (p *pooler) max() string {
	n := p.n
	x := p.x
	if p.column != "" {
		x = n.op("Where", []string{n.op("Greater", []string{p.column, n.float(0)}), x, n.float(math.Inf(-1))})
	}
	x = n.op("GlobalMaxPool", []string{n.op("Transpose", []string{x}, attrInts("perm", 0, 2, 1))})
	sum := n.op("MatMul", []string{p.row, p.x})
	x = n.op("Add", []string{p.flat(x), p.flat(n.op("Mul", []string{sum, n.float(0)}))})
	if p.skip == 0 {
		return x
	}
	// Nothing left to pool is minus infinity, which is never written.
	return n.op("Add", []string{x, n.op("Log", []string{p.any()})})
}

// last is the last token; 0 where all tokens are left out.
func (p *pooler) last() string {
	n := p.n
	x := ""
	if p.padded {
		x = p.at(n.op("Sub", []string{p.whole, n.float(1)}))
	} else {
		x = n.op("Gather", []string{p.x, n.scalarInt(-1)}, attrInt("axis", 1))
	}
	if p.skip > 0 {
		x = n.op("Mul", []string{p.flat(x), p.any()})
	}
	return x
}

// firstBehind is the first token that is not left out, or the first of all where
// every one is.
func (p *pooler) firstBehind() string {
	n := p.n
	return p.at(n.op("Mul", []string{n.op("Reshape", []string{p.any(), n.ints(-1, 1, 1)}), n.float(float64(p.skip))}))
}

// at is one token of each text, by its position, fp32 [items or 1, 1, 1].
func (p *pooler) at(position string) string {
	n := p.n
	all := n.op("Reshape", []string{n.float32(p.upTo(0)), n.ints(1, 1, -1)})
	return n.op("MatMul", []string{n.float32(n.op("Equal", []string{all, position})), p.x})
}

// any is 1 where a token counts, else 0: [items or 1, 1].
func (p *pooler) any() string {
	n := p.n
	some := n.float32(n.op("Greater", []string{p.count, n.float(0)}))
	return n.op("Reshape", []string{some, n.ints(-1, 1)})
}

func (p *pooler) atLeast(count string) string {
	return p.n.op("Max", []string{count, p.n.float(minCount)})
}

func (p *pooler) flat(x string) string {
	return p.n.op("Reshape", []string{x, p.n.ints(-1, int64(p.width))})
}
