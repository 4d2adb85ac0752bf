package backfill

import (
	"math"

	"localembed/internal/fault"
)

// gate is in front of the store: a vector with NaN or Inf is never written, nor
// one of zeros where the recipe normalizes, which no model gives. Multiplying by zero keeps
// NaN and turns Inf into NaN, so one sum tells.
func gate(vectors []float32, dim int, normalized bool) error {
	for i := 0; i < len(vectors); i += dim {
		bad, size := float32(0), float32(0)
		for _, v := range vectors[i : i+dim] {
			bad += v * 0
			size += v * v
		}
		if math.IsNaN(float64(bad)) {
			return notFinite{item: i / dim}
		}
		if normalized && size == 0 {
			return fault.New(fault.BadVectors, "vector %d of the batch is zero in every component", i/dim).
				Hinting("the model or the device is broken: `localembed model DIR --check` tests the folder; nothing of the batch is kept")
		}
	}
	return nil
}
