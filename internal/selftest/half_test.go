package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/onnx"
	"localembed/internal/testenv"
	"localembed/internal/tokenize"
	"localembed/models"
)

// kinds are the architectures in the order of docs/models.md.
var kinds = []string{"bert", "roberta", "xlm-roberta", "camembert", "distilbert", "mpnet", "electra", "albert", "modernbert", "nomic_bert", "qwen3"}

// TestHalfPrecisionOnRealTexts compares fp16 with fp32 on package descriptions: every
// tiny folder that a graph is built for, by its architecture, and all-MiniLM-L6-v2.
func TestHalfPrecisionOnRealTexts(t *testing.T) {
	type row struct {
		Text string `parquet:"text"`
	}
	rows, err := parquet.ReadFile[row](testenv.Shared(t, "reference", "debian_3k.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := 0; i < len(rows); i += 100 {
		texts = append(texts, rows[i].Text)
	}
	rt := loadORT(t)
	least, folders := map[string]float64{}, map[string]int{}
	for _, zoo := range []string{filepath.Join(testenv.Root(t), "models", "testdata", "zoo"), testenv.Shared(t, "zoo")} {
		files, err := filepath.Glob(filepath.Join(zoo, "*", "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dir := filepath.Dir(file)
			if _, err := models.Open(dir, models.Options{Tokenize: tokenize.IDs, Precision: "fp16"}); err != nil {
				continue // without a pooling, or an ONNX file alone
			}
			kind := modelType(t, file)
			c := compareHalf(t, rt, dir, texts)
			if folders[kind]++; folders[kind] == 1 || c < least[kind] {
				least[kind] = c
			}
		}
	}
	if len(folders) != len(kinds) {
		t.Errorf("%d architectures were compared, want %d", len(folders), len(kinds))
	}
	var table strings.Builder
	table.WriteString("| model_type | folders | texts | least cosine of fp16 to fp32 |\n|---|---|---|---|\n")
	for _, kind := range kinds {
		fmt.Fprintf(&table, "| %s | %d | %d | %.7f |\n", kind, folders[kind], len(texts), least[kind])
	}
	fmt.Fprintf(&table, "| bert: all-MiniLM-L6-v2 | 1 | %d | %.7f |\n", len(texts), compareHalf(t, rt, testenv.Model(t), texts))
	t.Log("\n" + table.String())
	if *update {
		writeTable(t, "precision", table.String())
	}
}

func modelType(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Kind string `json:"model_type"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c.Kind
}

// compareHalf is the least cosine of a text's vector in fp16 to that in fp32.
func compareHalf(t *testing.T, rt *onnx.Runtime, dir string, texts []string) float64 {
	t.Helper()
	vectors := map[string][][]float32{}
	for _, precision := range []string{"fp32", "fp16"} {
		m, err := models.Open(dir, models.Options{Tokenize: tokenize.IDs, Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenize.Open(m.TokenizerJSON, tokenize.Options{MaxTokens: m.Recipe.MaxTokens, Prompt: m.Recipe.Prompt})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.OpenCPU("cpu:0", m, 1)
		if err != nil {
			t.Fatal(err)
		}
		te := &test{d: s, o: Options{Tokenizer: tok, Dims: m.Recipe.Dims}}
		ids, _, err := te.tokenize(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range ids {
			v, err := te.run([][]int64{text}, nil)
			if err != nil {
				t.Fatal(err)
			}
			vectors[precision] = append(vectors[precision], v[0])
		}
		_ = s.Close()
		tok.Close()
	}
	least := 1.0
	for i, half := range vectors["fp16"] {
		wide := make([]float64, len(half))
		for j, x := range vectors["fp32"][i] {
			wide[j] = float64(x)
		}
		c, _ := likeness(half, wide)
		if !(c >= 0.9999) {
			t.Errorf("%s, text %d: the cosine of fp16 to fp32 is %.6f", filepath.Base(dir), i, c)
		}
		least = min(least, c)
	}
	if least == 1 {
		t.Errorf("%s: fp16 gives the same vectors as fp32, so it is not computed in fp16", filepath.Base(dir))
	}
	return least
}
