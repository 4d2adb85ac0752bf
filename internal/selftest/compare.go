package selftest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"localembed/internal/fault"
)

// compare embeds the reference's texts, each alone, and compares.
func (t *test) compare(ctx context.Context, ref *Reference) (*Match, error) {
	texts, truncated, err := t.tokenize(ctx, ref.Texts)
	if err != nil {
		return nil, err
	}
	m := &Match{MinCosine: 1}
	for _, c := range ref.Calls {
		for i, ids := range texts {
			if err := ref.checkTokens(c, i, ids, truncated[i]); err != nil {
				return nil, err
			}
			v, err := t.run([][]int64{ids}, nil)
			if err != nil {
				return nil, err
			}
			cosine, err := ref.checkVector(c, i, v[0])
			if err != nil {
				return nil, err
			}
			m.MinCosine = min(m.MinCosine, cosine)
			m.Texts++
		}
	}
	return m, nil
}

func (ref *Reference) checkTokens(c Call, i int, ids []int64, truncated bool) error {
	switch {
	case c.Tokens != nil && c.Tokens[i] != len(ids):
		return ref.mismatch(i, "it has %d tokens instead of %d", len(ids), c.Tokens[i])
	case c.IDs != nil && !slices.Equal(c.IDs[i], ids):
		return ref.mismatch(i, "it has other token ids")
	case c.Truncated != nil && c.Truncated[i] != truncated:
		return ref.mismatch(i, "that it is cut is %t instead of %t", truncated, c.Truncated[i])
	}
	return nil
}

// checkVector returns the cosine of a text's vector to the reference's.
func (ref *Reference) checkVector(c Call, i int, v []float32) (float64, error) {
	cosine, ratio := likeness(v, c.Embeddings[i])
	if !(cosine >= ref.MinCosine) {
		return 0, ref.mismatch(i, "its vector has the cosine %.6f to the reference's, and at least %g is wanted", cosine, ref.MinCosine)
	}
	tolerance := 1e-3
	if ref.MinCosine < 0.9999 {
		tolerance = 1e-2 // half precision
	}
	if ref.lengths && !(math.Abs(ratio-1) <= tolerance) {
		return 0, ref.mismatch(i, "its vector is %.4f times as long as the reference's", ratio)
	}
	return cosine, nil
}

// mismatch is a refusal of the model because of one text.
func (ref *Reference) mismatch(i int, format string, args ...any) error {
	return fault.New(fault.ModelRefused, "the model does not give what this file says, at text %d, %.60q: %s", i, ref.Texts[i], fmt.Sprintf(format, args...)).In(ref.path).
		Hinting("fetch the folder again; if it is whole, localembed reads it otherwise than its publisher: please report it. Without this file nothing is compared")
}

// likeness is the cosine of two vectors, and the length of a divided by that of b.
func likeness(a []float32, b []float64) (cosine, ratio float64) {
	var ab, aa, bb float64
	for i, x := range a {
		ab += float64(x) * b[i]
		aa += float64(x) * float64(x)
		bb += b[i] * b[i]
	}
	return ab / math.Sqrt(aa*bb), math.Sqrt(aa / bb)
}
