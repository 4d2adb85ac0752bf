package onnx

import (
	"math"
	"math/rand/v2"
	"testing"

	"localembed/models"
	"localembed/models/modeltest"
)

func TestGraphMatchesPlainComputation(t *testing.T) {
	rt := load(t)
	for name, change := range map[string]func(*modeltest.BERT, *models.Options){
		"mean, normalized": func(*modeltest.BERT, *models.Options) {},
		"mean":             func(b *modeltest.BERT, _ *models.Options) { b.Normalize = false },
		"cls":              func(b *modeltest.BERT, _ *models.Options) { b.Pooling, b.Normalize = "cls", false },
		"cls, normalized":  func(b *modeltest.BERT, _ *models.Options) { b.Pooling = "cls" },
		"gelu_new":         func(b *modeltest.BERT, _ *models.Options) { b.Act = "gelu_new" },
		"relu":             func(b *modeltest.BERT, _ *models.Options) { b.Act = "relu" },
		"prefix":           func(b *modeltest.BERT, _ *models.Options) { b.Prefix = "bert." },
		"one head":         func(b *modeltest.BERT, _ *models.Options) { b.Heads = 1 },
		"cut to 10":        func(b *modeltest.BERT, o *models.Options) { b.Normalize, o.Dims = false, 10 },
		"tiny epsilon":     func(b *modeltest.BERT, _ *models.Options) { b.Eps = 1e-12 },
	} {
		t.Run(name, func(t *testing.T) {
			b, o := modeltest.New(), models.Options{}
			change(b, &o)
			b.Fill()
			m, err := models.Open(b.Write(t), o)
			if err != nil {
				t.Fatal(err)
			}
			s := cpu(t, rt, m)
			rng := rand.New(rand.NewPCG(3, 4))
			lengths := []int32{20, 3, 11, 1}
			padded := make([]int64, len(lengths)*20)
			want := make([][]float64, len(lengths))
			for i, n := range lengths {
				for j := range n {
					padded[i*20+int(j)] = rng.Int64N(int64(b.Vocab))
				}
				ids := padded[i*20 : i*20+int(n)]
				want[i] = b.Vector(ids)[:m.Recipe.Dims]
				got := make([]float32, m.Recipe.Dims)
				if err := s.Run(ids, 1, int(n), nil, got); err != nil {
					t.Fatal(err)
				}
				within(t, "exact", i, got, want[i])
			}
			got := make([]float32, len(lengths)*m.Recipe.Dims)
			if err := s.Run(padded, len(lengths), 20, lengths, got); err != nil {
				t.Fatal(err)
			}
			for i := range lengths {
				within(t, "padded", i, got[i*m.Recipe.Dims:(i+1)*m.Recipe.Dims], want[i])
			}
		})
	}
}

// within compares each component within what fp32 leaves.
func within(t *testing.T, how string, text int, got []float32, want []float64) {
	t.Helper()
	for i, v := range got {
		if d := math.Abs(float64(v) - want[i]); !(d < 1e-5) {
			t.Fatalf("%s, text %d, component %d: got %g, want %g", how, text, i, v, want[i])
		}
	}
}
