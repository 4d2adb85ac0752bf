package onnx

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"localembed/internal/testenv"
	"localembed/internal/tokenize"
	"localembed/models"
	"localembed/models/modeltest"
)

// kinds are the tiny model folders of this repository, which have every
// architecture and pooling.
func kinds(t testing.TB) []string {
	t.Helper()
	configs, err := filepath.Glob(filepath.Join(testenv.Root(t), "models", "testdata", "zoo", "*", "config.json"))
	if err != nil || len(configs) == 0 {
		t.Fatalf("no model folders in models/testdata/zoo: %v", err)
	}
	dirs := make([]string, len(configs))
	for i, c := range configs {
		dirs[i] = filepath.Dir(c)
	}
	return dirs
}

// Every kind of model gives the same bits in any batch, and nearly the same
// vectors by the other form of attention and in padded batches.
func TestEveryKind(t *testing.T) {
	rt := load(t)
	for _, dir := range kinds(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := models.Open(dir, models.Options{Tokenize: tokenize.IDs})
			if err != nil {
				t.Fatal(err)
			}
			other := *m
			other.Fused = true
			plain, fused := cpu(t, rt, m), cpu(t, rt, &other)
			dim := m.Recipe.Dims
			batchOfEqualLengths(t, plain, m.VocabSize, dim)
			if m.Recipe.MaxTokens > 700 {
				batchOfEqualLengths(t, plain, m.VocabSize, dim, 300, 700) // in blocks
			}

			rng := rand.New(rand.NewPCG(9, 10))
			mixed := []int32{17, 9, 13, 8}
			padded := make([]int64, len(mixed)*17)
			for i, n := range mixed {
				for j := range n {
					padded[i*17+int(j)] = rng.Int64N(int64(m.VocabSize))
				}
			}
			got := make([]float32, len(mixed)*dim)
			if err := plain.Run(padded, len(mixed), 17, mixed, got); err != nil {
				t.Fatal(err)
			}
			for i, n := range mixed {
				ids := padded[i*17 : i*17+int(n)]
				want, byFused := make([]float32, dim), make([]float32, dim)
				if err := plain.Run(ids, 1, int(n), nil, want); err != nil {
					t.Fatal(err)
				}
				if err := fused.Run(ids, 1, int(n), nil, byFused); err != nil {
					t.Fatal(err)
				}
				agree(t, "padded", got[i*dim:(i+1)*dim], want)
				agree(t, "fused", byFused, want)
			}
			lengths := []int{40}
			if m.Recipe.MaxTokens > 700 {
				lengths = append(lengths, 700) // in blocks, and at once
			}
			for _, n := range lengths {
				ids := make([]int64, 2*n)
				for i := range ids {
					ids[i] = rng.Int64N(int64(m.VocabSize))
				}
				want, byFused := make([]float32, 2*dim), make([]float32, 2*dim)
				if err := errors.Join(plain.Run(ids, 2, n, nil, want), fused.Run(ids, 2, n, nil, byFused)); err != nil {
					t.Fatal(err)
				}
				agree(t, "fused, two texts", byFused, want)
			}
		})
	}
}

func agree(t *testing.T, how string, got, want []float32) {
	t.Helper()
	for i, v := range want {
		if d := math.Abs(float64(got[i] - v)); got[i] != v && !(d <= 5e-6*max(1, math.Abs(float64(v)))) {
			t.Fatalf("%s: component %d is %g, want %g", how, i, got[i], v)
		}
	}
}

func TestFusedMiniLM(t *testing.T) {
	m := minilm(t)
	other := *m
	other.Fused = true
	rt := load(t)
	plain, fused := cpu(t, rt, m), cpu(t, rt, &other)
	worst := 0.0
	for _, text := range debianTexts(t) {
		a, b := make([]float32, m.Recipe.Dims), make([]float32, m.Recipe.Dims)
		if err := plain.Run(text.IDs, 1, len(text.IDs), nil, a); err != nil {
			t.Fatal(err)
		}
		if err := fused.Run(text.IDs, 1, len(text.IDs), nil, b); err != nil {
			t.Fatal(err)
		}
		for i := range a {
			worst = max(worst, math.Abs(float64(a[i]-b[i])))
		}
	}
	if !(worst < 1e-6) {
		t.Errorf("the two forms of attention differ by %g", worst)
	}
	t.Logf("the two forms of attention differ by %.2g at most", worst)
}

// What is not a number must come out as such, whatever the pooling.
func TestNaNComesThrough(t *testing.T) {
	rt := load(t)
	for _, pooling := range []string{"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"} {
		b := modeltest.New()
		b.Pooling, b.Normalize = pooling, false
		b.Fill()
		// One row of the table: only a text with the id 7 is hit.
		words := b.Weights["embeddings.word_embeddings.weight"]
		for i := range b.Hidden {
			words.Data[7*b.Hidden+i] = float32(math.NaN())
		}
		m, err := models.Open(b.Write(t), models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := cpu(t, rt, m)
		dim := m.Recipe.Dims
		got := make([]float32, 3*dim)
		for _, lengths := range [][]int32{nil, {3, 4, 4}} {
			if err := s.Run([]int64{1, 2, 3, 4, 5, 7, 6, 8, 9, 1, 2, 3}, 3, 4, lengths, got); err != nil {
				t.Fatal(err)
			}
			isNaN := func(v float32) bool { return v != v }
			if slices.ContainsFunc(got[:dim], isNaN) || slices.ContainsFunc(got[2*dim:], isNaN) {
				t.Errorf("%s: a text's NaN reached its neighbours", pooling)
			}
			if !isNaN(got[dim]) || slices.ContainsFunc(got[dim:2*dim], func(v float32) bool { return v == v }) {
				t.Errorf("%s, lengths %v: NaN became %v", pooling, lengths, got[dim:dim+4])
			}
		}
	}
}

// RoBERTa's kinds count positions from the pad id on, and a pad token that a text
// spells out takes none.
func TestPositionsOfRoBERTa(t *testing.T) {
	rt := load(t)
	text := []int64{5, 1, 6, 7}
	roberta := modeltest.New()
	roberta.Type, roberta.Pooling = "roberta", "mean"
	roberta.Fill()
	bert := modeltest.New()
	bert.Pooling = "mean"
	bert.Fill()
	from := roberta.Weights["embeddings.position_embeddings.weight"].Data
	to := bert.Weights["embeddings.position_embeddings.weight"].Data
	for i, position := range []int{2, 1, 3, 4} {
		copy(to[i*bert.Hidden:(i+1)*bert.Hidden], from[position*bert.Hidden:(position+1)*bert.Hidden])
	}
	m, err := models.Open(roberta.Write(t), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Recipe.MaxTokens != 18 {
		t.Errorf("20 positions are %d tokens, want 18", m.Recipe.MaxTokens)
	}
	got := make([]float32, m.Recipe.Dims)
	if err := cpu(t, rt, m).Run(text, 1, len(text), nil, got); err != nil {
		t.Fatal(err)
	}
	within(t, "roberta", 0, got, bert.Vector(text))
}
