package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"localembed/models"
	"localembed/models/modeltest"
)

// Pooling and normalization are added to a graph in its own operator set: operators
// changed between them, from attributes to inputs mostly.
func TestOperatorSets(t *testing.T) {
	rt := load(t)
	b := modeltest.New()
	b.Fill()
	lengths := []int32{20, 3, 11, 1}
	padded, states := make([]int64, len(lengths)*20), make([][][]float64, len(lengths))
	rng := rand.New(rand.NewPCG(7, 8))
	for i, n := range lengths {
		for j := range n {
			id := rng.IntN(b.Vocab)
			padded[i*20+int(j)] = int64(id)
			row := make([]float64, b.Hidden)
			for k := range row {
				row[k] = float64(b.Weights["embeddings.word_embeddings.weight"].Data[id*b.Hidden+k])
			}
			states[i] = append(states[i], row)
		}
	}
	for opset := int64(models.MinOpset); opset <= models.MaxOpset; opset++ {
		for _, pooling := range []string{"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"} {
			t.Run(fmt.Sprint(opset, " ", pooling), func(t *testing.T) {
				b.Pooling, b.Normalize = pooling, opset%2 == 0
				kind, least := "fp32", 1-1e-6
				if opset%3 == 0 {
					kind, least = "fp16", 1-1e-4
				}
				dir := b.Write(t)
				if err := os.WriteFile(filepath.Join(dir, "model.onnx"), b.LookUp(t, opset, kind), 0o644); err != nil {
					t.Fatal(err)
				}
				m, err := models.Open(dir, models.Options{ONNX: true})
				if err != nil {
					t.Fatal(err)
				}
				s := cpu(t, rt, m)
				got := make([]float32, len(lengths)*b.Hidden)
				if err := s.Run(padded, len(lengths), 20, lengths, got); err != nil {
					t.Fatal(err)
				}
				for i := range lengths {
					want := modeltest.Pool(states[i], pooling)
					if b.Normalize {
						want = unit(want)
					}
					near(t, "padded", i, got[i*b.Hidden:(i+1)*b.Hidden], want, least)
				}
			})
		}
	}
}

func unit(v []float64) []float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v
}
