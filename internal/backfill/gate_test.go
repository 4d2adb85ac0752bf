package backfill

import (
	"math"
	"testing"
	"time"

	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/onnx/fake"
	"localembed/internal/testenv"
	"localembed/models"
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

// BenchmarkGate says what share of a device's time the check of its vectors takes: of MiniLM
// on one core, with texts of which a core embeds the most. Both are measured in one run.
func BenchmarkGate(b *testing.B) {
	m, err := models.Open(testenv.Model(b), models.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rt, err := onnx.Load(testenv.ORT(b))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	device, err := rt.OpenCPU("cpu:0", m, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	const texts, length, runs = 128, 8, 10
	dim := m.Recipe.Dims
	ids := make([]int64, texts*length)
	for i := range ids {
		ids[i] = int64(1000 + i)
	}
	v := make([]float32, texts*dim)
	start := time.Now()
	for range runs {
		if err := device.Run(ids, texts, length, nil, v); err != nil {
			b.Fatal(err)
		}
	}
	computed := float64(time.Since(start).Nanoseconds()) / runs / texts
	b.SetBytes(int64(4 * len(v)))
	for b.Loop() {
		if err := gate(v, dim, true); err != nil {
			b.Fatal(err)
		}
	}
	checked := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / texts
	b.ReportMetric(checked, "ns/vector")
	b.ReportMetric(100*checked/computed, "%-of-MiniLM")
}
