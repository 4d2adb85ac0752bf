package models

import (
	"fmt"
	"math"
)

// mpnetPad is the id from which MPNet counts its positions, whatever config.json
// says about padding.
const mpnetPad = 1

// mpnet is MPNet: no token types, RoBERTa's positions, and in each score a
// number that depends on the distance of the two tokens alone.
func mpnet(c config) encoder {
	e := bert(c)
	e.prefix = "mpnet."
	pad := mpnetPad
	e.padding = &pad
	e.typeTable = ""
	e.distances, e.buckets = "encoder.relative_attention_bias.weight", or(c.Buckets, distanceBuckets)
	if e.buckets < distanceBuckets {
		e.wrong = fmt.Sprintf("relative_attention_num_buckets is %d, fewer than the %d that the model uses", e.buckets, distanceBuckets)
	}
	e.layer = func(l int) layer {
		p := fmt.Sprintf("encoder.layer.%d.", l)
		return layer{
			query: p + "attention.attn.q", key: p + "attention.attn.k", value: p + "attention.attn.v",
			output: p + "attention.attn.o", attentionNorm: p + "attention.LayerNorm",
			inner: p + "intermediate.dense", outer: p + "output.dense", outputNorm: p + "output.LayerNorm",
		}
	}
	return e
}

// Distances fall into buckets: one half for each direction, of which one half
// has a bucket for each distance and the other widens by a logarithm up to 128.
const (
	distanceBuckets = 32
	farthest        = 128
)

// bucket of the distance from a token to another one, which stands later where
// it is positive. The sums are in fp32, as the reference has them, for the
// borders between buckets.
func bucket(distance int) int64 {
	const half = distanceBuckets / 2
	const exact = half / 2
	b := 0
	if distance > 0 {
		b = half
	}
	n := max(distance, -distance)
	if n < exact {
		return int64(b + n)
	}
	log := float32(math.Log(float64(n) / exact))
	far := exact + int(log/float32(math.Log(farthest/exact))*(half-exact))
	return int64(b + min(far, half-1))
}

// distanceBias is what the distance of two tokens adds to their score, the same
// in every layer: [1, heads, length, length]. length is int64 [1].
func (b *builder) distanceBias(table, length string, positions int) string {
	buckets := make([]int64, 0, 2*positions-1)
	for d := 1 - positions; d < positions; d++ {
		buckets = append(buckets, bucket(d))
	}
	// Constant: a column for each distance, [heads, 2 × positions - 1].
	byDistance := b.op("Transpose", []string{b.op("Gather", []string{b.weight(table), b.ints(buckets...)})}, attrInts("perm", 1, 0))
	at := b.op("Range", []string{b.scalarInt(0), b.op("Squeeze", []string{length}), b.scalarInt(1)})
	from := b.op("Reshape", []string{at, b.ints(-1, 1)})
	column := b.op("Add", []string{b.op("Sub", []string{at, from}), b.ints(int64(positions - 1))})
	bias := b.op("Gather", []string{byDistance, column}, attrInt("axis", 1))
	return b.op("Unsqueeze", []string{bias, b.ints(0)})
}
