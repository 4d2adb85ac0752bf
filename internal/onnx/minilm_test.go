package onnx

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// debian is a text of the reference corpus, tokenized.
type debian struct {
	Row int     `json:"row"`
	IDs []int64 `json:"ids"`
}

func debianTexts(t testing.TB) []debian {
	t.Helper()
	b, err := os.ReadFile("testdata/debian_ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []debian
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestMiniLMMatchesReference(t *testing.T) {
	texts := debianTexts(t)
	path := shared(t, "reference", "minilm_debian_3k.parquet")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the reference vectors are not on this machine: %v", err)
	}
	type row struct {
		Embedding []float32 `parquet:"embedding,list"`
	}
	rows, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	m := minilm(t)
	s := cpu(t, load(t), m)
	out := make([]float32, m.Recipe.Dims)
	for _, text := range texts {
		if err := s.Run(text.IDs, 1, len(text.IDs), nil, out); err != nil {
			t.Fatal(err)
		}
		if c := cosine(out, rows[text.Row].Embedding); c < 0.999999 {
			t.Errorf("row %d, %d tokens: cosine %.7f", text.Row, len(text.IDs), c)
		}
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// A vector must not depend on how many texts it was computed with, to the bit.
func TestBatchSizeDoesNotMatter(t *testing.T) {
	m := minilm(t)
	s := cpu(t, load(t), m)
	dim := m.Recipe.Dims
	texts := debianTexts(t)
	for _, length := range []int{3, 4, 7, 17, 64, 129} {
		var ids []int64
		items := 0
		for _, text := range texts {
			if len(text.IDs) >= length {
				ids = append(append(ids, text.IDs[:length-1]...), 102)
				items++
			}
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

func TestMaskedAgreesWithExact(t *testing.T) {
	m := minilm(t)
	s := cpu(t, load(t), m)
	dim := m.Recipe.Dims
	texts := debianTexts(t)
	longest := 0
	for _, text := range texts {
		longest = max(longest, len(text.IDs))
	}
	ids := make([]int64, len(texts)*longest)
	lengths := make([]int32, len(texts))
	for i, text := range texts {
		copy(ids[i*longest:], text.IDs)
		lengths[i] = int32(len(text.IDs))
	}
	padded := make([]float32, len(texts)*dim)
	if err := s.Run(ids, len(texts), longest, lengths, padded); err != nil {
		t.Fatal(err)
	}
	exact := make([]float32, dim)
	for i, text := range texts {
		if err := s.Run(text.IDs, 1, len(text.IDs), nil, exact); err != nil {
			t.Fatal(err)
		}
		for j, v := range exact {
			if d := math.Abs(float64(v - padded[i*dim+j])); d > 1e-6 {
				t.Fatalf("row %d, component %d: exact and padded differ by %g", text.Row, j, d)
			}
		}
	}
}
