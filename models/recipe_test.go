package models

import (
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"
	"localembed/models/modeltest"
)

const twoModules = `{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}`

// addDense writes a Dense module of zeros.
func addDense(t testing.TB, dir, sub, conf string, in, out int) {
	t.Helper()
	put(t, dir, sub+"/config.json", conf)
	modeltest.WriteTensors(t, filepath.Join(dir, sub, "model.safetensors"), map[string]modeltest.Tensor{
		"linear.weight": {Shape: []int{out, in}, Data: make([]float32, in*out)}, "linear.bias": {Shape: []int{out}, Data: make([]float32, out)},
	})
}

// Both spellings of a pooling, alone and joined.
func TestPoolingSpellings(t *testing.T) {
	for content, want := range map[string]string{
		`{}`: "mean",
		`{"pooling_mode_cls_token":false,"pooling_mode_max_tokens":true}`: "max",
		`{"pooling_mode_lasttoken":true,"pooling_mode_weightedmean_tokens":true,"pooling_mode_mean_sqrt_len_tokens":true,
		  "pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true,"pooling_mode_cls_token":true}`: "cls+max+mean+mean_sqrt_len_tokens+weightedmean+lasttoken",
		`{"pooling_mode":"lasttoken"}`:                                  "lasttoken",
		`{"pooling_mode":["mean","cls"]}`:                               "mean+cls",
		`{"pooling_mode":"max","pooling_mode_cls_token":true}`:          "max",
		`{"pooling_mode_cls_token":false,"word_embedding_dimension":7}`: "mean",
	} {
		dir := tiny(t)
		put(t, dir, "1_Pooling/config.json", content)
		m, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("%s: %v", content, err)
		}
		if m.Recipe.Pooling != want || m.Recipe.Dims != 24*(1+strings.Count(want, "+")) {
			t.Errorf("%s: pooling %q with %d components, want %q", content, m.Recipe.Pooling, m.Recipe.Dims, want)
		}
	}
}

// Modules behind the pooling, in any order; the last Normalize is the recipe's.
func TestModules(t *testing.T) {
	const dense, norm = `,{"path":"2_Dense","type":"sentence_transformers.base.modules.dense.Dense"}`, `,{"path":"3_Normalize","type":"sentence_transformers.models.Normalize"}`
	for modules, want := range map[string]struct {
		normalize bool
		dims      int
		steps     int
	}{
		"":                  {false, 24, 0},
		norm:                {true, 24, 0},
		dense:               {false, 8, 1},
		dense + norm:        {true, 8, 1},
		norm + dense:        {false, 8, 2},
		norm + dense + norm: {true, 8, 2},
	} {
		dir := tiny(t)
		put(t, dir, "modules.json", "["+twoModules+modules+"]")
		addDense(t, dir, "2_Dense", `{"in_features":24,"out_features":8}`, 24, 8)
		m, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Recipe.Normalize != want.normalize || m.Recipe.Dims != want.dims || len(m.head.vectors) != want.steps {
			t.Errorf("%q: normalize %t, %d components, %d modules", modules, m.Recipe.Normalize, m.Recipe.Dims, len(m.head.vectors))
		}
		if _, err := m.Graph(true); err != nil {
			t.Error(err)
		}
	}
}

// What the caller overrides is said, what the caller fills in is not.
func TestOverrides(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		o         Options
		bare      bool
		pooling   string
		normalize bool
		warning   string
	}{
		"nothing":           {Options{}, false, "mean", true, ""},
		"the same":          {Options{Pooling: "mean", Normalize: &yes}, false, "mean", true, ""},
		"pooling":           {Options{Pooling: "cls+max"}, false, "cls+max", true, "--pooling cls+max overrides mean, which 1_Pooling/config.json says"},
		"not normalized":    {Options{Normalize: &no}, false, "mean", false, "--normalize=false overrides true, which modules.json says"},
		"filled in":         {Options{Pooling: "max", Normalize: &no}, true, "max", false, ""},
		"filled in, joined": {Options{Pooling: "mean+mean", Normalize: &yes}, true, "mean+mean", true, ""},
	} {
		dir := tiny(t)
		if c.bare {
			for _, file := range []string{"modules.json", "1_Pooling/config.json"} {
				remove(t, dir, file)
			}
		}
		m, err := Open(dir, c.o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Recipe.Pooling != c.pooling || m.Recipe.Normalize != c.normalize || strings.Join(m.Warnings, "; ") != c.warning {
			t.Errorf("%s: %+v, warnings %q", name, m.Recipe, m.Warnings)
		}
	}
	// A Dense module that was trained for one pooling does not fit another one.
	dir := tiny(t)
	put(t, dir, "modules.json", "["+twoModules+`,{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`)
	addDense(t, dir, "2_Dense", `{"in_features":24,"out_features":8}`, 24, 8)
	if _, err := Open(dir, Options{Pooling: "cls+mean"}); !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), "gets 48") {
		t.Errorf("got %v", err)
	}
}

// The tokens that are left out are those of the prompt alone, without the special
// one at its end.
func TestPromptLeftOut(t *testing.T) {
	dir := tiny(t)
	put(t, dir, "1_Pooling/config.json", `{"pooling_mode":"mean","include_prompt":false}`)
	put(t, dir, promptsFile, `{"prompts":{"document":"d: "}}`)
	put(t, dir, "tokenizer.json", `{"added_tokens":[{"id":2,"special":true},{"id":9,"special":false}]}`)
	for last, want := range map[uint32]int{2: 4, 9: 5, 7: 5} {
		asked := ""
		m, err := Open(dir, Options{Tokenize: func(_ []byte, text string) ([]uint32, error) {
			asked = text
			return []uint32{1, 2, 3, 4, last}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if asked != "d: " || m.head.skip != want {
			t.Errorf("%q ends with %d: %d tokens are left out, want %d", asked, last, m.head.skip, want)
		}
		if m.head.one() != all {
			t.Error("the first token alone is computed though it is left out")
		}
	}
	none := ""
	if m, err := Open(dir, Options{Prompt: &none}); err != nil || m.head.skip != 0 {
		t.Errorf("without a prompt: %v", err)
	}
}

// Every value of the recipe says where it came from.
func TestFacts(t *testing.T) {
	dir := tiny(t)
	put(t, dir, promptsFile, `{"prompts":{"passage":"p: "}}`)
	put(t, dir, "sentence_bert_config.json", `{"max_seq_length":64}`)
	m, err := Open(dir, Options{Dims: 5})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Fact{}
	for _, f := range m.Facts {
		if _, twice := got[f.Name]; twice || f.From == "" || f.Value == "" {
			t.Errorf("%+v", f)
		}
		got[f.Name] = f
	}
	for name, want := range map[string]Fact{
		"architecture":    {Value: "bert", From: "config.json"},
		"layers":          {Value: "2", From: "config.json"},
		"weights":         {Value: "F32, 42944 bytes", From: "model.safetensors"},
		"pooling":         {Value: "mean", From: "1_Pooling/config.json"},
		"normalize":       {Value: "true", From: "modules.json"},
		"prompt":          {Value: `"p: "`, From: promptsFile + ", passage"},
		"max tokens":      {Value: "20", From: "config.json"},
		"dimensions":      {Value: "5", From: "--dims"},
		"FLOPs per token": {Value: "16896", From: "the linear layers"},
	} {
		want.Name = name
		if got[name] != want {
			t.Errorf("%+v, want %+v", got[name], want)
		}
	}
	if len(m.Warnings) != 2 { // the prompt's name, and a limit over the positions
		t.Errorf("warnings %q", m.Warnings)
	}
}
