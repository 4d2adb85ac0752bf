package models

import "math"

// attention is how the layers of a graph attend.
type attention struct {
	form
	heads, keyHeads, size int    // heads of queries; heads of keys and values; size of a head
	bias                  string // added to the scores where texts attend at once, [items or 1, heads or 1, length or 1, length]; "" for none
	causal                bool   // the operator itself hides what is behind a token
	blocks                blocks // how long texts attend
	turns                 *turns // rotary positions, or nil
	items, length, rows   string // int64 [1] each, and the shape [items, -1, hidden]
}

// add is attention of one layer without its output projection: a row for each
// row of queries, [·, heads × size]. Heads are normalized where epsilon is not negative.
func (a attention) add(b *builder, names layer, queries, x string, epsilon float64, p place) string {
	bias := a.bias
	if p != all && bias != "" && a.blocks.short == "" {
		// A mask alone has one row, for every query.
		bias = p.cut(b, bias, 2)
	}
	scale := 1 / math.Sqrt(float64(a.size))
	if a.own() {
		return a.foreign(b, names, queries, x, bias, epsilon, p)
	}
	shape := func(dims ...string) string { return b.op("Concat", dims, attrInt("axis", 0)) }
	perHead := func(name, norm, x string, heads int, scale float64) string {
		gemm := scale
		if epsilon >= 0 && norm != "" {
			gemm = 1
		}
		// Scaling the queries inside their Gemm, or the norm behind it, saves a pass over the scores.
		y := b.op("Reshape", []string{b.linear(name, x, gemm), shape(a.items, b.ints(-1), b.ints(int64(heads)), b.ints(int64(a.size)))})
		if epsilon >= 0 && norm != "" {
			y = b.rmsNorm(norm, y, epsilon, scale)
		}
		return y
	}
	transpose := func(x string, perm ...int64) string {
		return b.op("Transpose", []string{x}, attrInts("perm", perm...))
	}
	q := transpose(perHead(names.query, names.queryNorm, queries, a.heads, scale), 0, 2, 1, 3)
	k := perHead(names.key, names.keyNorm, x, a.keyHeads, 1)
	if a.turns == nil {
		k = transpose(k, 0, 2, 3, 1)
	} else {
		t := *a.turns
		k = transpose(b.turn(transpose(k, 0, 2, 1, 3), t), 0, 1, 3, 2)
		if p != all {
			t = t.only(b, p)
		}
		q = b.turn(q, t)
	}
	v := transpose(perHead(names.value, "", x, a.keyHeads, 1), 0, 2, 1, 3)
	atOnce := func() string { return a.attend(b, q, k, v, bias, a.length) }
	var y string
	switch {
	case a.blocks.short == "":
		y = atOnce()
	case p == all:
		y = b.either(a.blocks.short, atOnce, func() string { return a.inBlocks(b, q, k, v) })
	case p == first:
		y = a.block(b, q, k, v, b.ints(0), b.ints(1))
	default:
		y = a.block(b, q, k, v, b.op("Sub", []string{a.length, b.ints(1)}), b.ints(1))
	}
	return b.op("Reshape", []string{y, b.ints(-1, int64(a.heads*a.size))})
}

// spanBias is the bias with a span, where texts attend at once.
func (a attention) spanBias(b *builder, s span) string {
	length, bias := a.length, a.bias
	if a.blocks.short != "" {
		// Of long texts it is not used, so that it has no size.
		length = a.blocks.whole
		if bias != "" {
			bias = b.op("Slice", []string{bias, b.ints(0), length, b.ints(3)})
		}
	}
	at := b.positions(b.ints(0), length)
	sum := b.spanBias(s, at, at)
	if bias != "" {
		sum = b.op("Add", []string{sum, bias})
	}
	return sum
}

// attend is attention of queries [items, heads, rows, size] to keys [items, keyHeads,
// size, keys] and their values: [items, rows, heads, size].
func (a attention) attend(b *builder, q, k, v, bias, keys string) string {
	shape := func(heads int, last string) string {
		return b.op("Concat", []string{a.items, b.ints(int64(heads)), b.ints(-1), last}, attrInt("axis", 0))
	}
	grouped := a.keyHeads != a.heads
	if grouped {
		// The queries of all heads that share keys stand below each other, so that keys are not repeated.
		q = b.op("Reshape", []string{q, b.ints(0, int64(a.keyHeads), -1, int64(a.size))})
	}
	s := b.op("MatMul", []string{q, k})
	if grouped {
		s = b.op("Reshape", []string{s, shape(a.heads, keys)})
	}
	if bias != "" {
		s = b.op("Add", []string{s, bias})
	}
	s = b.op("Softmax", []string{s}, attrInt("axis", -1))
	if grouped {
		s = b.op("Reshape", []string{s, shape(a.keyHeads, keys)})
	}
	y := b.op("MatMul", []string{s, v})
	if grouped {
		y = b.op("Reshape", []string{y, shape(a.heads, b.ints(int64(a.size)))})
	}
	return b.op("Transpose", []string{y}, attrInts("perm", 0, 2, 1, 3))
}

// maskBias is what is added to the scores: 0 for a token, hidden for padding, whose
// weight is then 0 exactly: [items, 1, 1, length].
func (b *builder) maskBias(mask string) string {
	m := b.op("Sub", []string{b.float(1), b.narrow(b.float32(mask))})
	m = b.op("Mul", []string{m, b.hidden()})
	return b.op("Reshape", []string{m, b.ints(0, 1, 1, -1)})
}
