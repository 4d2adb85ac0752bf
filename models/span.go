package models

// span is which tokens a token attends to: as many before and behind itself, any
// number where negative.
type span struct{ before, behind int }

// everywhere is the span of BERT's family.
var everywhere = span{-1, -1}

// hidden is added to the score of what is not attended to, whose weight is then 0
// exactly. Two of them and a score stay within fp16.
func (b *builder) hidden() string {
	if b.half {
		return b.float(-3e4)
	}
	return b.float(-1e9)
}

// spanBias is what a span adds to the scores of queries and keys at such positions,
// [1, 1, queries, keys]: 0 where a token attends, hidden where it does not. It has no
// heads and no items, so that it is small beside the scores.
func (b *builder) spanBias(s span, queries, keys string) string {
	queries = b.op("Reshape", []string{queries, b.ints(-1, 1)})
	outside := ""
	if s.behind >= 0 {
		outside = b.op("Greater", []string{keys, b.op("Add", []string{queries, b.ints(int64(s.behind))})})
	}
	if s.before >= 0 {
		early := b.op("Less", []string{keys, b.op("Sub", []string{queries, b.ints(int64(s.before))})})
		if outside == "" {
			outside = early
		} else {
			outside = b.op("Or", []string{outside, early})
		}
	}
	bias := b.op("Where", []string{outside, b.hidden(), b.float(0)})
	return b.op("Unsqueeze", []string{bias, b.ints(0, 1)})
}

// positions are from, from + 1 … to - 1, [to - from]; both are int64 [1].
func (b *builder) positions(from, to string) string {
	return b.op("Range", []string{b.op("Squeeze", []string{from}), b.op("Squeeze", []string{to}), b.scalarInt(1)})
}

// place is the one token of each text that the last layer computes.
type place int

const (
	all   place = iota // each token
	first              // of a text
	last               // of a text, where all of a batch have one length
)

// cut leaves only the place along an axis, which stays.
func (p place) cut(b *builder, x string, axis int64) string {
	from, to := int64(0), int64(1)
	if p == last {
		from, to = -1, 1<<62
	}
	return b.op("Slice", []string{x, b.ints(from), b.ints(to), b.ints(axis)})
}
