package backfill

import (
	"math"
	"testing"

	"localembed/internal/fault"
	"localembed/internal/onnx/fake"
)

func TestGate(t *testing.T) {
	const texts, dim = 5, 7
	whole := func() []float32 {
		v := make([]float32, texts*dim)
		for i := range texts {
			fake.Vector([]int64{int64(i)}, v[i*dim:(i+1)*dim])
		}
		return v
	}
	if err := gate(whole(), dim, true); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range texts * dim {
			v := whole()
			v[at] = float32(bad)
			if n, ok := gate(v, dim, true).(notFinite); !ok || n.item != at/dim {
				t.Errorf("%g at %d: %v", bad, at, n)
			}
		}
	}
	v := whole()
	v[3] = math.MaxFloat32 // its square is Inf, it is not
	if err := gate(v, dim, true); err != nil {
		t.Errorf("a large number: %v", err)
	}
	clear(v[2*dim : 3*dim])
	if err := gate(v, dim, true); !fault.Is(err, fault.BadVectors) {
		t.Errorf("zeros: %v", err)
	}
	if err := gate(v, dim, false); err != nil {
		t.Errorf("zeros where nothing is normalized: %v", err)
	}
}

// A vector of MiniLM takes a core over a millisecond to compute, so the gate, with some
// hundred nanoseconds, is far below 1 % of a run.
func BenchmarkGate(b *testing.B) {
	const texts, dim = 64, 384
	v := make([]float32, texts*dim)
	for i := range texts {
		fake.Vector([]int64{int64(i)}, v[i*dim:(i+1)*dim])
	}
	b.SetBytes(4 * texts * dim)
	for b.Loop() {
		if err := gate(v, dim, true); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/texts, "ns/vector")
}
