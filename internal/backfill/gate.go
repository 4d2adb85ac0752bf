package backfill

import (
	"math"

	"localembed/internal/fault"
)

// gate is in front of the store: a vector with NaN or Inf is never written, nor
// one of zeros where the recipe normalizes, which no model gives. The sum of its squares
// says of nearly every vector that it is neither; only the others are looked at closely.
func gate(vectors []float32, dim int, normalized bool) error {
	for i := 0; i < len(vectors); i += dim {
		v := vectors[i : i+dim]
		if s := squares(v); s > 0 && s <= math.MaxFloat32 {
			continue
		}
		zero := true
		for _, x := range v {
			if x-x != 0 { // NaN for NaN and for Inf
				return notFinite{item: i / dim}
			}
			zero = zero && x == 0
		}
		if normalized && zero {
			return fault.New(fault.BadVectors, "vector %d of the batch is zero in every component", i/dim).
				Hinting("the model or the device is broken: `localembed model DIR --check` tests the folder; nothing of the batch is kept")
		}
	}
	return nil
}

// squares adds them up in four sums, since each addition waits for the one before.
func squares(v []float32) float32 {
	var a, b, c, d float32
	for ; len(v) >= 4; v = v[4:] {
		a += v[0] * v[0]
		b += v[1] * v[1]
		c += v[2] * v[2]
		d += v[3] * v[3]
	}
	for _, x := range v {
		a += x * x
	}
	return a + b + (c + d)
}
