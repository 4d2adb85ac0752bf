package onnx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"localembed/models"
	"localembed/models/modeltest"
)

// A Dense module behind the pooling: each activation, with and without a bias and
// its input added, and the same bits in any batch.
func TestDense(t *testing.T) {
	rt := load(t)
	const width, out = 24, 7
	rng := rand.New(rand.NewPCG(7, 8))
	numbers := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	dense := map[string]modeltest.Tensor{
		"linear.weight":   {Shape: []int{out, width}, Data: numbers(out * width)},
		"linear.bias":     {Shape: []int{out}, Data: numbers(out)},
		"residual.weight": {Shape: []int{out, width}, Data: numbers(out * width)},
	}
	product := func(name string, x []float64, o int) float64 {
		sum := 0.0
		for i, v := range x {
			sum += v * float64(dense[name].Data[o*width+i])
		}
		return sum
	}
	for name, act := range modeltest.DenseActivations {
		t.Run(name, func(t *testing.T) {
			b := modeltest.New()
			b.Normalize = false
			b.Fill()
			dir := b.Write(t)
			bias, residual := name < "M", name > "E"
			for file, content := range map[string]string{
				"modules.json":        `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`,
				"2_Dense/config.json": fmt.Sprintf(`{"in_features":%d,"out_features":%d,"bias":%t,"use_residual":%t,"activation_function":"torch.nn.modules.activation.%s"}`, width, out, bias, residual, name),
			} {
				modeltest.WriteTensors(t, filepath.Join(dir, "2_Dense", "model.safetensors"), dense)
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m, err := models.Open(dir, models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ids := []int64{3, 1, 4, 1, 5}
			pooled := b.Vector(ids)
			want := make([]float64, out)
			for o := range want {
				want[o] = product("linear.weight", pooled, o)
				if bias {
					want[o] += float64(dense["linear.bias"].Data[o])
				}
				want[o] = act(want[o])
				if residual {
					want[o] += product("residual.weight", pooled, o)
				}
			}
			s := cpu(t, rt, m)
			got := make([]float32, out)
			if err := s.Run(ids, 1, len(ids), nil, got); err != nil {
				t.Fatal(err)
			}
			within(t, "dense", 0, got, want)
			batchOfEqualLengths(t, s, b.Vocab, out)
		})
	}
}
