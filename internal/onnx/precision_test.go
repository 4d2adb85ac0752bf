package onnx

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"localembed/internal/testenv"
	"localembed/internal/tokenize"
	"localembed/models"
)

// In fp16 every kind of model gives nearly the vectors of fp32, padded or not, by
// both forms of attention.
func TestHalfPrecision(t *testing.T) {
	rt := load(t)
	for _, dir := range kinds(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			open := func(precision string, fused bool) *Session {
				m, err := models.Open(dir, models.Options{Tokenize: tokenize.IDs, Precision: precision})
				if err != nil {
					t.Fatal(err)
				}
				m.Fused = fused
				return cpu(t, rt, m)
			}
			m, err := models.Open(dir, models.Options{Tokenize: tokenize.IDs})
			if err != nil {
				t.Fatal(err)
			}
			dim := m.Recipe.Dims
			wide, half, fused := open("fp32", false), open("fp16", false), open("fp16", true)
			rng := rand.New(rand.NewPCG(3, 4))
			lengths := []int32{33, 21, 14, 12} // longer than every prompt that is left out
			const longest = 33
			padded := make([]int64, len(lengths)*longest)
			for i, n := range lengths {
				for j := range n {
					padded[i*longest+int(j)] = rng.Int64N(int64(m.VocabSize))
				}
			}
			want, got := make([]float32, len(lengths)*dim), make([]float32, len(lengths)*dim)
			if err := wide.Run(padded, len(lengths), longest, lengths, want); err != nil {
				t.Fatal(err)
			}
			if err := half.Run(padded, len(lengths), longest, lengths, got); err != nil {
				t.Fatal(err)
			}
			least := 1.0
			for i, n := range lengths {
				expected := want[i*dim : (i+1)*dim]
				least = min(least, cosine(got[i*dim:(i+1)*dim], expected))
				for _, s := range []*Session{half, fused} {
					alone := make([]float32, dim)
					if err := s.Run(padded[i*longest:i*longest+int(n)], 1, int(n), nil, alone); err != nil {
						t.Fatal(err)
					}
					least = min(least, cosine(alone, expected))
				}
			}
			t.Logf("least cosine %.6f", least)
			if !(least >= 0.999) || least == 1 {
				t.Errorf("the least cosine between fp16 and fp32 is %.6f", least)
			}
		})
	}
}

// Numbers beyond fp16 give vectors that are not finite, which are never written, rather
// than wrong ones. They are weights here: on a CPU, ONNX Runtime keeps the products of
// fp16 in fp32.
func TestHalfPrecisionOverflows(t *testing.T) {
	rt := load(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testenv.Root(t), "models", "testdata", "zoo", "bert-mean-reference"))); err != nil {
		t.Fatal(err)
	}
	enlarge(t, filepath.Join(dir, "model.safetensors"), "encoder.layer.0.output.dense.weight", 1e6)
	for precision, finite := range map[string]bool{"fp32": true, "fp16": false} {
		m, err := models.Open(dir, models.Options{Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float32, m.Recipe.Dims)
		if err := cpu(t, rt, m).Run([]int64{2, 9, 17, 30, 3}, 1, 5, nil, v); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, x := range v {
			sum += float64(x)
		}
		if got := !math.IsNaN(sum) && !math.IsInf(sum, 0); got != finite {
			t.Errorf("%s: the vector is %v; want it finite: %t", precision, v, finite)
		}
	}
}

// enlarge multiplies a tensor of a safetensors file.
func enlarge(t *testing.T, path, name string, by float32) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	data := 8 + int(binary.LittleEndian.Uint64(b))
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b[8:data], &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "__metadata__")
	rest, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(rest, &header); err != nil {
		t.Fatal(err)
	}
	at := header[name].Offsets
	for x := b[data+at[0] : data+at[1]]; len(x) > 0; x = x[4:] {
		binary.LittleEndian.PutUint32(x, math.Float32bits(by*math.Float32frombits(binary.LittleEndian.Uint32(x))))
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
