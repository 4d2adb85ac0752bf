package onnx

import (
	"fmt"
	"testing"

	"localembed/internal/testenv"
	"localembed/models"
)

// BenchmarkMiniLM runs batches of about 1 024 tokens on one thread.
func BenchmarkMiniLM(b *testing.B) { benchmark(b, minilm(b)) }

// BenchmarkFirstToken pools the first token alone, so that the last layer leaves
// the others out.
func BenchmarkFirstToken(b *testing.B) {
	m, err := models.Open(testenv.Model(b), models.Options{Pooling: "cls"})
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, m)
}

func benchmark(b *testing.B, m *models.Model) {
	s := cpu(b, load(b), m)
	for _, length := range []int{32, 64, 128, 256} {
		items := 1024 / length
		b.Run(fmt.Sprintf("%dx%d", items, length), func(b *testing.B) {
			ids := make([]int64, items*length)
			for i := range ids {
				ids[i] = int64(1000 + i%20000)
			}
			out := make([]float32, items*m.Recipe.Dims)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(ids, items, length, nil, out); err != nil {
					b.Fatal(err)
				}
			}
			perSecond := float64(len(ids)) * float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "tokens/s")
			b.ReportMetric(perSecond*m.FLOPsPerToken/1e9, "GFLOP/s")
		})
	}
}
