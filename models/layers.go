package models

// graph builds the encoder with the head behind it.
//
// Tokens run through it as one matrix [items × length, hidden]; only attention
// sees single texts.
func (e *built) graph(h head, f form) (Graph, error) {
	b := newBuilder(e.t)
	b.half = f.half
	b.input("input_ids")
	inputs := []Input{{Name: "input_ids", Role: IDs}}
	a := attention{form: f, heads: e.heads, keyHeads: e.keyHeads, size: e.size}
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
	a.items, a.length = items, length
	if f.tokens > maxWhole && e.distances == "" && !a.own() {
		a.blocks = b.blocks(length, a.bias)
	}
	a.rows = b.op("Concat", []string{items, b.ints(-1), b.ints(int64(e.hidden))}, attrInt("axis", 0))
	one := h.one()
	if one == last && f.masked {
		one = all // each text has its last token elsewhere
	}

	x := e.embed(b, length)
	sees := e.sights(b, a)
	for l := range e.count {
		p := all
		if l == e.count-1 {
			p = one
		}
		x = e.run(b, l, x, sees(l), p)
	}
	if e.finalNorm != "" {
		x = e.normalize(b, e.finalNorm, x)
	}
	x = b.op("Reshape", []string{x, a.rows})
	if f.half {
		b.half, x = false, b.float32(x) // the head is in fp32 in any case
	}
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

// sights is how each layer attends. What layers share is built once.
func (e *built) sights(b *builder, a attention) func(l int) attention {
	if e.view == nil {
		return func(int) attention { return a }
	}
	biases, turned := map[span]string{everywhere: a.bias}, map[float64]turns{}
	return func(l int) attention {
		v, a := e.view(l), a
		a.causal = a.own() && v.span == span{-1, 0}
		bias, ok := biases[v.span]
		if !ok && !a.causal {
			bias = a.spanBias(b, v.span)
			biases[v.span] = bias
		}
		if _, ok := turned[v.theta]; !ok {
			turned[v.theta] = b.turns(v.theta, e.size, a.tokens, a.length)
		}
		t := turned[v.theta]
		a.bias, a.blocks.span, a.turns = bias, v.span, &t
		return a
	}
}

// embed sums the embeddings of words, positions and the token type 0, and
// normalizes the sum: [tokens, hidden].
func (e *built) embed(b *builder, length string) string {
	x := b.op("Gather", []string{b.weight(e.words), "input_ids"})
	if rest := e.beside(b, length); rest != "" {
		x = b.op("Add", []string{x, rest})
	}
	x = b.op("Reshape", []string{x, b.ints(-1, int64(e.width))})
	if e.norm != "" {
		x = e.normalize(b, e.norm, x)
	}
	if e.project != "" {
		x = b.linear(e.project, x, 1)
	}
	return x
}

// beside is what is added to the embeddings of words, "" for nothing.
func (e *built) beside(b *builder, length string) string {
	kind := ""
	if e.typeTable != "" {
		kind = b.op("Gather", []string{b.weight(e.typeTable), b.ints(0)})
	}
	if e.positionTable == "" {
		return kind
	}
	positions := b.weight(e.positionTable)
	if kind != "" {
		// Both are constant, so that ONNX Runtime sums them once, when it opens the graph.
		positions = b.op("Add", []string{positions, kind})
	}
	if e.padding == nil {
		return b.op("Slice", []string{positions, b.ints(0), length, b.ints(0)})
	}
	// A pad token that a text spells out is attended to, but takes no position.
	pad := b.ints(int64(*e.padding))
	real := b.op("Cast", []string{b.op("Not", []string{b.op("Equal", []string{"input_ids", pad})})}, attrInt("to", int64(tensorInt64)))
	at := b.op("Mul", []string{b.op("CumSum", []string{real, b.scalarInt(1)}), real})
	return b.op("Gather", []string{positions, b.op("Add", []string{at, pad})})
}

// normalize is a norm of the encoder.
func (e *built) normalize(b *builder, name, x string) string {
	if e.rms {
		return b.rmsNorm(name, x, e.epsilon, 1)
	}
	return b.layerNorm(name, x, e.epsilon)
}

// run is one layer: [tokens, hidden] to the same. Of a place, only that token of
// each text comes out, [items, hidden]: the others count as keys and values alone.
func (e *built) run(b *builder, l int, x string, a attention, p place) string {
	names := e.layer(l)
	add := func(x, y string) string { return b.op("Add", []string{x, y}) }
	only := func(x string) string {
		if p == all {
			return x
		}
		return b.op("Reshape", []string{p.cut(b, b.op("Reshape", []string{x, a.rows}), 1), b.ints(-1, int64(e.hidden))})
	}
	seen := x
	if e.before && names.attentionNorm != "" {
		seen = e.normalize(b, names.attentionNorm, x)
	}
	x, queries := only(x), only(seen)
	x = add(b.linear(names.output, a.add(b, names, queries, seen, e.headEpsilon(), p), 1), x)
	if !e.before {
		x = e.normalize(b, names.attentionNorm, x)
		return e.normalize(b, names.outputNorm, add(e.feedForward(b, names, x), x))
	}
	return add(e.feedForward(b, names, e.normalize(b, names.outputNorm, x)), x)
}

// headEpsilon is that of the norms of heads, negative where there are none.
func (e *built) headEpsilon() float64 {
	if e.headNorms {
		return e.epsilon
	}
	return -1
}

func (e *built) feedForward(b *builder, names layer, x string) string {
	y := encoderActivations[e.act](b.nodes, b.linear(names.inner, x, 1))
	if names.up != "" {
		y = b.op("Mul", []string{y, b.linear(names.up, x, 1)})
	}
	return b.linear(names.outer, y, 1)
}
