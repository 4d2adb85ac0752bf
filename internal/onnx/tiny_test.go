package onnx

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"localembed/models"
	"localembed/models/modeltest"
)

func TestGraphMatchesPlainComputation(t *testing.T) {
	rt := load(t)
	kinds := map[string]func(*modeltest.BERT, *models.Options){
		"mean, normalized": func(*modeltest.BERT, *models.Options) {},
		"prefix":           func(b *modeltest.BERT, _ *models.Options) { b.Prefix = "bert." },
		"one head":         func(b *modeltest.BERT, _ *models.Options) { b.Heads = 1 },
		"cut to 10":        func(b *modeltest.BERT, o *models.Options) { b.Normalize, o.Dims = false, 10 },
		"tiny epsilon":     func(b *modeltest.BERT, _ *models.Options) { b.Eps = 1e-12 },
	}
	for act := range modeltest.Activations {
		kinds[act] = func(b *modeltest.BERT, _ *models.Options) { b.Act, b.Normalize = act, false }
	}
	for _, p := range []string{"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "lasttoken+cls", "mean+max+mean+mean_sqrt_len_tokens"} {
		kinds[p] = func(b *modeltest.BERT, _ *models.Options) { b.Pooling, b.Normalize = p, false }
		kinds[p+", normalized"] = func(b *modeltest.BERT, _ *models.Options) { b.Pooling = p }
	}
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) {
			b, o := modeltest.New(), models.Options{}
			b.Inner = 37 // no multiple of what a vector register holds
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
			batchOfEqualLengths(t, s, b.Vocab, m.Recipe.Dims)
			for i := range lengths {
				within(t, "padded", i, got[i*m.Recipe.Dims:(i+1)*m.Recipe.Dims], want[i])
			}
		})
	}
}

// batchOfEqualLengths wants the same bits from batches as from texts one by one, where
// no lengths are given of a few short ones.
func batchOfEqualLengths(t *testing.T, s *Session, vocab, dim int, lengths ...int) {
	t.Helper()
	if lengths == nil {
		lengths = []int{3, 4, 7, 17}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, length := range lengths {
		const items = 13
		ids := make([]int64, items*length)
		for i := range ids {
			ids[i] = rng.Int64N(int64(vocab))
		}
		alone := make([]float32, items*dim)
		for i := range items {
			if err := s.Run(ids[i*length:(i+1)*length], 1, length, nil, alone[i*dim:(i+1)*dim]); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range []int{2, 3, 5, items} {
			got := make([]float32, n*dim)
			if err := s.Run(ids[:n*length], n, length, nil, got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, alone[:n*dim]) {
				t.Errorf("length %d: %d texts in a batch give other bits than one by one", length, n)
			}
		}
	}
}

// within compares each component within what fp32 leaves.
func within(t *testing.T, how string, text int, got []float32, want []float64) {
	t.Helper()
	for i, v := range got {
		if d := math.Abs(float64(v) - want[i]); !(d < 2e-5*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s, text %d, component %d: got %g, want %g", how, text, i, v, want[i])
		}
	}
}
