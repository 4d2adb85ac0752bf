package selftest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/testenv"
	"localembed/models"
	"localembed/models/modeltest"
)

func weightsOf(m *models.Model) string {
	i := slices.IndexFunc(m.Facts, func(f models.Fact) bool { return f.Name == "weights" })
	return m.Facts[i].Value
}

// A real model with weights of int8 gives nearly the vectors of the one it was made from,
// says that they are not the same, and is reproducible: its numbers are widened before
// they are used.
func TestInt8Weights(t *testing.T) {
	rt := loadORT(t)
	var vectors [2][]float32
	for i, dir := range []string{testenv.Model(t), testenv.Int8(t)} {
		m, tok := open(t, dir, models.Options{})
		s, err := rt.OpenCPU("cpu:0", m, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := Run(context.Background(), s, Options{Tokenizer: tok, Dims: m.Recipe.Dims})
		if err != nil || r.Level != AnyBatch {
			t.Errorf("%s: got %+v, %v", dir, r, err)
		}
		if quantized := strings.Contains(weightsOf(m), "quantized"); quantized != (i == 1) {
			t.Errorf("%s: weights %s", dir, weightsOf(m))
		}
		if warned := strings.Contains(strings.Join(m.Warnings, " "), "is quantized (weights of INT8): its vectors are near"); warned != (i == 1) {
			t.Errorf("%s: warnings %q", dir, m.Warnings)
		}
		te := &test{o: Options{Tokenizer: tok, Dims: m.Recipe.Dims}}
		texts, _, err := te.tokenize(context.Background(), fixedTexts)
		if err != nil {
			t.Fatal(err)
		}
		for _, ids := range texts {
			out := make([]float32, m.Recipe.Dims)
			if err := s.Run(ids, 1, len(ids), nil, out); err != nil {
				t.Fatal(err)
			}
			vectors[i] = append(vectors[i], out...)
		}
	}
	least := 1.0
	for from := 0; from < len(vectors[0]); from += 384 {
		var ab, aa, bb float64
		for i := from; i < from+384; i++ {
			a, b := float64(vectors[0][i]), float64(vectors[1][i])
			ab, aa, bb = ab+a*b, aa+a*a, bb+b*b
		}
		least = min(least, ab/math.Sqrt(aa*bb))
	}
	t.Logf("least cosine %.5f", least)
	if least < 0.99 || least > 0.999999 {
		t.Errorf("least cosine %.7f between fp32 and int8", least)
	}
}

// A graph that quantizes by what is in the batch says so before it runs, and the test
// finds it.
func TestDynamicQuantization(t *testing.T) {
	b := modeltest.New()
	b.Vocab, b.Hidden, b.Heads = 30522, 8, 2
	b.Fill()
	dir := b.Write(t)
	raw, err := os.ReadFile(filepath.Join(testenv.Model(t), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tokenizer.json": raw, "model.onnx": b.LookUp(t, 17, "dynamic")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, tok := open(t, filepath.Join(dir, "model.onnx"), models.Options{})
	if !strings.HasPrefix(weightsOf(m), "ONNX, dynamically quantized (DynamicQuantizeLinear, MatMulInteger, weights of INT8), ") || !strings.Contains(strings.Join(m.Warnings, " "), "depends on the other texts of its batch") {
		t.Errorf("weights %s, warnings %q", weightsOf(m), m.Warnings)
	}
	s, err := loadORT(t).OpenCPU("cpu:0", m, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := Run(context.Background(), s, Options{Tokenizer: tok, Dims: m.Recipe.Dims})
	if err != nil || r.Level != Dependent || r.Difference == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}
