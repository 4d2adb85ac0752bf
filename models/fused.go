package models

import (
	"math"

	"localembed/models/onnxpb"
)

// own says whether a graph attends by ONNX Runtime's own operators. They have no use
// for a mask, and hold no scores, so that long texts need no blocks.
func (a attention) own() bool { return a.fused && !a.masked }

// foreign is attention.add by ONNX Runtime's own operators: RotaryEmbedding and
// MultiHeadAttention, which take fp32 and fp16 on CUDA and on the CPU.
func (a attention) foreign(b *builder, names layer, queries, x, bias string, epsilon float64, p place) string {
	rows := func(heads int) string {
		return b.op("Concat", []string{a.items, b.ints(-1, int64(heads*a.size))}, attrInt("axis", 0))
	}
	part := func(name, norm, x string, heads int) string {
		y := b.linear(name, x, 1)
		if epsilon >= 0 && norm != "" {
			y = b.rmsNorm(norm, b.op("Reshape", []string{y, b.ints(-1, int64(heads), int64(a.size))}), epsilon, 1)
		}
		return b.op("Reshape", []string{y, rows(heads)})
	}
	turn := func(x string, heads int, from string) string {
		if a.turns == nil {
			return x
		}
		return b.foreign(fusedDomain, "RotaryEmbedding", []string{x, from, a.turns.cos, a.turns.sin}, attrInt("num_heads", int64(heads)))
	}
	from := b.ints(0) // position of the first query
	if p == last {
		from = b.op("Sub", []string{a.length, b.ints(1)})
	}
	q := turn(part(names.query, names.queryNorm, queries, a.heads), a.heads, from)
	k := turn(part(names.key, names.keyNorm, x, a.keyHeads), a.keyHeads, b.ints(0))
	v := part(names.value, "", x, a.keyHeads)
	if a.keyHeads != a.heads {
		// The operator for groups takes fp16 alone on CUDA. Repeating keys costs little beside the scores.
		groups := int64(a.heads / a.keyHeads)
		repeat := func(x string) string {
			x = b.op("Reshape", []string{x, b.ints(0, 0, int64(a.keyHeads), 1, int64(a.size))})
			x = b.op("Expand", []string{x, b.ints(1, 1, 1, groups, 1)})
			return b.op("Reshape", []string{x, rows(a.heads)})
		}
		k, v = repeat(k), repeat(v)
	}
	in := []string{q, k, v}
	attrs := []*onnxpb.AttributeProto{attrInt("num_heads", int64(a.heads)), attrFloat("scale", 1/math.Sqrt(float64(a.size)))}
	if bias != "" {
		in = append(in, "", "", bias)
	}
	if a.causal && p == all {
		attrs = append(attrs, attrInt("unidirectional", 1))
	}
	y := b.foreign(fusedDomain, "MultiHeadAttention", in, attrs...)
	return b.op("Reshape", []string{y, b.ints(-1, int64(a.heads*a.size))})
}
