package models

// Graphs for texts of more than maxWhole tokens have a second way to attend: texts
// longer than blockRows take their queries in blocks of at most so many, so that the
// scores of one block are in memory rather than those of the text, and score only the
// keys that a block can see.
const (
	maxWhole  = 512
	blockRows = 256
)

// blocks is how long texts attend.
type blocks struct {
	short string // whether texts attend at once, a bool [1]; "" where they always do
	whole string // their length where they do, else 0, int64 [1]
	bias  string // of the mask, added to the scores: [items, 1, 1, length]; "" for none
	span  span
}

// blocks is how texts of such a length attend in a graph.
func (b *builder) blocks(length, bias string) blocks {
	short := b.op("LessOrEqual", []string{length, b.ints(blockRows)})
	whole := b.op("Mul", []string{length, b.op("Cast", []string{short}, attrInt("to", int64(tensorInt64)))})
	return blocks{short, whole, bias, everywhere}
}

// inBlocks is attend of all tokens.
func (a attention) inBlocks(b *builder, q, k, v string) string {
	up := func(x, by string) string { // rounded up
		return b.op("Div", []string{b.op("Sub", []string{b.op("Add", []string{x, by}), b.ints(1)}), by})
	}
	// Blocks of one size, so that fewer rows than blocks are computed in vain.
	count := up(a.length, b.ints(blockRows))
	rows := up(a.length, count)
	missing := b.op("Sub", []string{b.op("Mul", []string{count, rows}), a.length})
	pads := b.op("Concat", []string{b.ints(0, 0, 0, 0, 0, 0), missing, b.ints(0)}, attrInt("axis", 0))
	q = b.op("Pad", []string{q, pads})
	y := b.loop(count, func(at string) string {
		from := b.op("Mul", []string{b.op("Reshape", []string{at, b.ints(1)}), rows})
		to := b.op("Add", []string{from, rows})
		return a.block(b, b.op("Slice", []string{q, from, to, b.ints(2)}), k, v, from, rows)
	})
	y = b.op("Transpose", []string{y}, attrInts("perm", 1, 0, 2, 3, 4))
	y = b.op("Reshape", []string{y, b.op("Concat", []string{a.items, b.ints(-1, int64(a.heads), int64(a.size))}, attrInt("axis", 0))})
	return b.op("Slice", []string{y, b.ints(0), a.length, b.ints(1)})
}

// block is attend of so many queries from a position on.
func (a attention) block(b *builder, q, k, v, from, rows string) string {
	if a.blocks.span == everywhere {
		return a.attend(b, q, k, v, a.blocks.bias, a.length)
	}
	end := b.op("Add", []string{from, rows})
	first, beyond := b.ints(0), a.length
	if n := a.blocks.span.before; n >= 0 {
		first = b.op("Max", []string{first, b.op("Sub", []string{from, b.ints(int64(n))})})
	}
	if n := a.blocks.span.behind; n >= 0 {
		beyond = b.op("Min", []string{beyond, b.op("Add", []string{end, b.ints(int64(n))})})
	}
	cut := func(x string, axis int64) string { return b.op("Slice", []string{x, first, beyond, b.ints(axis)}) }
	bias := b.spanBias(a.blocks.span, b.positions(from, end), b.positions(first, beyond))
	if a.blocks.bias != "" {
		bias = b.op("Add", []string{bias, cut(a.blocks.bias, 3)})
	}
	return a.attend(b, q, cut(k, 3), cut(v, 2), bias, b.op("Sub", []string{beyond, first}))
}
