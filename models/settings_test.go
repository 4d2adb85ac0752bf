package models

import (
	"os"
	"path/filepath"
	"testing"

	"localembed/internal/fault"
)

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		sbert, tokenizer string
		o                Options
		want             int
	}{
		"positions decide":         {"", "", Options{}, 20},
		"tokenizer decides":        {"", `{"model_max_length":12}`, Options{}, 12},
		"the tokenizer's sentinel": {"", `{"model_max_length":1000000000000000019884624838656}`, Options{}, 20},
		"tokenizer over positions": {"", `{"model_max_length":512}`, Options{}, 20},
		"max_seq_length decides":   {`{"max_seq_length":16}`, `{"model_max_length":12}`, Options{}, 16},
		"over the positions":       {`{"max_seq_length":64}`, "", Options{}, 20},
		"null":                     {`{"max_seq_length":null}`, `{"model_max_length":12}`, Options{}, 12},
		"asked for less":           {`{"max_seq_length":16}`, "", Options{MaxTokens: 5}, 5},
		"asked for more":           {`{"max_seq_length":16}`, "", Options{MaxTokens: 20}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
			if c.sbert != "" {
				put(t, dir, "sentence_bert_config.json", c.sbert)
			}
			if c.tokenizer != "" {
				put(t, dir, "tokenizer_config.json", c.tokenizer)
			}
			m, err := Open(dir, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if m.Recipe.MaxTokens != c.want {
				t.Errorf("%d, want %d", m.Recipe.MaxTokens, c.want)
			}
		})
	}
	roberta, one := config{ModelType: "roberta", Positions: 514}, 0
	if n := roberta.usablePositions(); n != 512 {
		t.Errorf("RoBERTa has %d usable positions, want 512", n)
	}
	roberta.PadID = &one
	if n := roberta.usablePositions(); n != 513 {
		t.Errorf("with the pad id 0 there are %d usable positions, want 513", n)
	}
}

func TestPrompts(t *testing.T) {
	text, none := "given: ", ""
	for name, c := range map[string]struct {
		config string
		o      Options
		want   string
	}{
		"none":               {`{}`, Options{}, ""},
		"document":           {`{"prompts":{"query":"q: ","document":"d: ","passage":"p: "}}`, Options{}, "d: "},
		"empty document":     {`{"prompts":{"document":"","passage":"p: "}}`, Options{}, "p: "},
		"null document":      {`{"prompts":{"document":null,"corpus":"c: "}}`, Options{}, "c: "},
		"default is not it":  {`{"prompts":{"query":"q: "},"default_prompt_name":"query"}`, Options{}, ""},
		"given":              {`{"prompts":{"document":"d: "}}`, Options{Prompt: &text}, "given: "},
		"given empty":        {`{"prompts":{"document":"d: "}}`, Options{Prompt: &none}, ""},
		"by name":            {`{"prompts":{"document":"d: ","query":"q: "}}`, Options{PromptName: "query"}, "q: "},
		"of a query":         {`{"prompts":{"document":"d: ","query":"q: "}}`, Options{Query: true}, "q: "},
		"a query without":    {`{"prompts":{"document":"d: "}}`, Options{Query: true}, ""},
		"by name, and empty": {`{"prompts":{"document":"d: ","query":""}}`, Options{PromptName: "query"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
			put(t, dir, promptsFile, c.config)
			m, err := Open(dir, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if m.Recipe.Prompt != c.want {
				t.Errorf("%q, want %q", m.Recipe.Prompt, c.want)
			}
			if unlike := c.want == "p: " || c.want == "c: "; unlike != (len(m.Warnings) == 1) {
				t.Errorf("warnings %q", m.Warnings)
			}
		})
	}
}

func TestLowerCase(t *testing.T) {
	for have, want := range map[string]string{
		`{"normalizer":null,"model":{}}`: `{"model":{},"normalizer":{"type":"Lowercase"}}`,
		`{"model":{}}`:                   `{"model":{},"normalizer":{"type":"Lowercase"}}`,
		`{"normalizer":{"type":"NFC"}}`:  `{"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"NFC"}]}}`,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend"}]}}`:     `{"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"NFC"},{"type":"Prepend"}]}}`,
		`{ "normalizer": {"type":"Lowercase"} }`:                                                   `{ "normalizer": {"type":"Lowercase"} }`,
		`{ "normalizer": {"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]}}`: `{ "normalizer": {"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]}}`,
	} {
		dir := tiny(t)
		put(t, dir, "tokenizer.json", have)
		put(t, dir, "sentence_bert_config.json", `{"do_lower_case":true}`)
		m, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if string(m.TokenizerJSON) != want {
			t.Errorf("%s\nbecame %s\nwant   %s", have, m.TokenizerJSON, want)
		}
		put(t, dir, "sentence_bert_config.json", `{"do_lower_case":false}`)
		if m, err = Open(dir, Options{}); err != nil || string(m.TokenizerJSON) != have {
			t.Errorf("without do_lower_case it became %s, %v", m.TokenizerJSON, err)
		}
	}
}

func TestDimensions(t *testing.T) {
	dir := tiny(t)
	put(t, dir, promptsFile, `{"truncate_dim":16}`)
	for want, o := range map[int]Options{16: {}, 20: {Dims: 20}, 1: {Dims: 1}} {
		m, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Recipe.Dims != want {
			t.Errorf("%d components, want %d", m.Recipe.Dims, want)
		}
	}
}

// Whatever the JSON files hold, opening ends with a model or one refusal.
func FuzzConfig(f *testing.F) {
	dir := tiny(f)
	for _, name := range []string{"config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, b)
	}
	f.Add(promptsFile, []byte(`{"prompts":{"document":null},"truncate_dim":3}`))
	f.Add("sentence_bert_config.json", []byte(`{"max_seq_length":5,"do_lower_case":true}`))
	f.Add("tokenizer_config.json", []byte(`{"model_max_length":1e30}`))
	f.Add("2_Dense/config.json", []byte(`{"in_features":24,"out_features":8,"use_residual":true,"module_input_name":"sentence_embedding"}`))
	f.Add("modules.json", []byte("["+twoModules+`,{"path":"2_Dense","type":"sentence_transformers.models.Dense"},{"path":"","type":"sentence_transformers.models.Normalize"}]`))
	f.Add("1_Pooling/config.json", []byte(`{"pooling_mode":["max","weightedmean"],"include_prompt":false}`))
	f.Add("model.safetensors.index.json", []byte(`{"weight_map":{"a":"model.safetensors","b":"x/../../y"}}`))
	for kind := range architectures {
		f.Add("config.json", []byte(`{"model_type":"`+kind+`","vocab_size":50,"hidden_size":24,"num_hidden_layers":2,"num_attention_heads":3,"intermediate_size":40,"max_position_embeddings":20}`))
	}
	names := map[string]bool{"2_Dense/config.json": true, "model.safetensors.index.json": true, "config.json": true, "modules.json": true, "1_Pooling/config.json": true, "tokenizer.json": true,
		promptsFile: true, "sentence_bert_config.json": true, "tokenizer_config.json": true}
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		if !names[name] || len(b) > 1<<16 {
			return
		}
		dir := tiny(t)
		switch name {
		case "2_Dense/config.json":
			put(t, dir, "modules.json", "["+twoModules+`,{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`)
			addDense(t, dir, "2_Dense", "", 24, 8)
		case "model.safetensors.index.json":
			if err := os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "model-1.safetensors")); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir, name, string(b))
		m, err := Open(dir, Options{})
		if err != nil {
			if !fault.Is(err, fault.ModelRefused) {
				t.Fatal(err)
			}
			return
		}
		if _, err := m.Graph(true); err != nil {
			t.Fatal(err)
		}
	})
}
