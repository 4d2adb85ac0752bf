package models

import "math"

// graph builds the encoder with the head behind it.
//
// Tokens run through it as one matrix [items × length, hidden]; only attention
// sees single texts.
func (e *built) graph(h head, f form) (Graph, error) {
	b := newBuilder(e.t)
	b.input("input_ids")
	inputs := []Input{{Name: "input_ids", Role: IDs}}
	a := attention{form: f, heads: e.heads, size: e.hidden / e.heads}
	mask := ""
	if f.masked {
		mask = "attention_mask"
		b.input(mask)
		inputs = append(inputs, Input{Name: mask, Role: Mask})
		a.bias = b.maskBias(mask)
	}
	shape := b.op("Shape", []string{"input_ids"})
	items := b.op("Slice", []string{shape, b.ints(0), b.ints(1)})
	length := b.op("Slice", []string{shape, b.ints(1), b.ints(2)})
	if e.distances != "" {
		d := b.distanceBias(e.distances, length, e.positions)
		if a.bias != "" {
			d = b.op("Add", []string{d, a.bias})
		}
		a.bias = d
	}
	a.split = b.op("Concat", []string{items, b.ints(-1), b.ints(int64(a.heads)), b.ints(int64(a.size))}, attrInt("axis", 0))
	a.rows = b.op("Concat", []string{items, b.ints(-1), b.ints(int64(e.hidden))}, attrInt("axis", 0))

	x := e.embed(b, length)
	for l := range e.count {
		x = e.run(b, l, x, a, h.firstOnly() && l == e.count-1)
	}
	x = b.op("Reshape", []string{x, a.rows})
	const output = "vector"
	if err := h.add(b.nodes, x, mask, output); err != nil {
		return Graph{}, err
	}
	pb, err := b.model(e.kind)
	if err != nil {
		return Graph{}, err
	}
	return Graph{Proto: pb, DataDir: e.t.dir, Inputs: inputs, Output: output}, nil
}

// embed sums the embeddings of words, positions and the token type 0, and
// normalizes the sum: [tokens, hidden].
func (e *built) embed(b *builder, length string) string {
	words := b.op("Gather", []string{b.weight(e.words), "input_ids"})
	positions := b.weight(e.positionTable)
	if e.typeTable != "" {
		// Both are constant, so that ONNX Runtime sums them once, when it opens the graph.
		positions = b.op("Add", []string{positions, b.op("Gather", []string{b.weight(e.typeTable), b.ints(0)})})
	}
	if e.padding == nil {
		positions = b.op("Slice", []string{positions, b.ints(0), length, b.ints(0)})
	} else {
		// A pad token that a text spells out is attended to, but takes no position.
		pad := b.ints(int64(*e.padding))
		real := b.op("Cast", []string{b.op("Not", []string{b.op("Equal", []string{"input_ids", pad})})}, attrInt("to", int64(tensorInt64)))
		at := b.op("Mul", []string{b.op("CumSum", []string{real, b.scalarInt(1)}), real})
		positions = b.op("Gather", []string{positions, b.op("Add", []string{at, pad})})
	}
	x := b.op("Add", []string{words, positions})
	x = b.op("Reshape", []string{x, b.ints(-1, int64(e.width))})
	x = b.layerNorm(e.norm, x, e.epsilon)
	if e.project != "" {
		x = b.linear(e.project, x, 1)
	}
	return x
}

// run is one layer: [tokens, hidden] to the same. With first, only the first
// token of each text comes out, [items, hidden]: the others count as keys and
// values alone.
func (e *built) run(b *builder, l int, x string, a attention, first bool) string {
	names := e.layer(l)
	queries := x
	if first {
		queries = b.op("Gather", []string{b.op("Reshape", []string{x, a.rows}), b.scalarInt(0)}, attrInt("axis", 1))
	}
	y := a.add(b, names, queries, x, first)
	y = b.linear(names.output, y, 1)
	x = b.layerNorm(names.attentionNorm, b.op("Add", []string{y, queries}), e.epsilon)
	y = encoderActivations[e.act](b.nodes, b.linear(names.inner, x, 1))
	y = b.linear(names.outer, y, 1)
	return b.layerNorm(names.outputNorm, b.op("Add", []string{y, x}), e.epsilon)
}

// attention is how the layers of a graph attend.
type attention struct {
	form
	heads, size int    // size of a head
	bias        string // added to the scores, [items or 1, heads or 1, length, length or 1]; "" for none
	split, rows string // shapes: [items, -1, heads, size] and [items, -1, hidden]
}

// add is attention of one layer without its output projection: a row for each
// row of queries, [·, hidden].
func (a attention) add(b *builder, names layer, queries, x string, first bool) string {
	bias := a.bias
	if first && bias != "" {
		// A mask alone has one row, for every query.
		bias = b.op("Slice", []string{bias, b.ints(0), b.ints(1), b.ints(2)})
	}
	scale := 1 / math.Sqrt(float64(a.size))
	if a.fused && !a.masked {
		part := func(name, x string) string { return b.op("Reshape", []string{b.linear(name, x, 1), a.rows}) }
		in := []string{part(names.query, queries), part(names.key, x), part(names.value, x)}
		if bias != "" {
			in = append(in, "", "", bias)
		}
		y := b.foreign(fusedDomain, "MultiHeadAttention", in, attrInt("num_heads", int64(a.heads)), attrFloat("scale", scale))
		return b.op("Reshape", []string{y, b.ints(-1, int64(a.heads*a.size))})
	}
	perHead := func(name, x string, scale float64, perm ...int64) string {
		y := b.op("Reshape", []string{b.linear(name, x, scale), a.split})
		return b.op("Transpose", []string{y}, attrInts("perm", perm...))
	}
	// Scaling the queries inside their Gemm saves a pass over the scores.
	q := perHead(names.query, queries, scale, 0, 2, 1, 3)
	k := perHead(names.key, x, 1, 0, 2, 3, 1)
	v := perHead(names.value, x, 1, 0, 2, 1, 3)
	s := b.op("MatMul", []string{q, k})
	if bias != "" {
		s = b.op("Add", []string{s, bias})
	}
	s = b.op("Softmax", []string{s}, attrInt("axis", -1))
	y := b.op("Transpose", []string{b.op("MatMul", []string{s, v})}, attrInts("perm", 0, 2, 1, 3))
	return b.op("Reshape", []string{y, b.ints(-1, int64(a.heads*a.size))})
}

// maskBias is what is added to the scores: 0 for a token, -1e9 for padding, whose
// weight is then 0 exactly: [items, 1, 1, length].
func (b *builder) maskBias(mask string) string {
	m := b.op("Sub", []string{b.float(1), b.float32(mask)})
	m = b.op("Mul", []string{m, b.float(-1e9)})
	return b.op("Reshape", []string{m, b.ints(0, 1, 1, -1)})
}
