package models

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/tokenize"
)

// Where the files of a folder contradict each other, the ids are those of
// transformers: testdata/make_tokenizer_classes.py writes them.
func TestTokenizerClasses(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "tokenizer_classes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Texts []string `json:"texts"`
		Cases []struct {
			Folder    string         `json:"folder"`
			Config    map[string]any `json:"tokenizer_config.json"`
			Model     map[string]any `json:"config.json"`
			Tokenizer map[string]any `json:"tokenizer.json"`
			Old       map[string]any `json:"added_tokens.json"`
			Specials  map[string]any `json:"special_tokens_map.json"`
			IDs       [][]uint32     `json:"ids"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(b, &reference); err != nil {
		t.Fatal(err)
	}
	var texts column.Arena
	var docs []int32
	for i, s := range reference.Texts {
		texts.Append([]byte(s))
		docs = append(docs, int32(i))
	}
	warned := 0
	for i, c := range reference.Cases {
		t.Run(fmt.Sprintf("%d %s %v %v", i, c.Folder, c.Config, c.Model), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "zoo", c.Folder))); err != nil {
				t.Fatal(err)
			}
			edit(t, dir, "tokenizer_config.json", c.Config)
			edit(t, dir, "config.json", c.Model)
			edit(t, dir, "tokenizer.json", c.Tokenizer)
			for name, fields := range map[string]map[string]any{"added_tokens.json": c.Old, "special_tokens_map.json": c.Specials} {
				if fields != nil {
					put(t, dir, name, `{}`)
					edit(t, dir, name, fields)
				}
			}
			put(t, dir, "sentence_bert_config.json", `{}`) // its lower-casing is not the tokenizer's
			m, err := Open(dir, Options{})
			if c.IDs == nil {
				if !fault.Is(err, fault.ModelRefused) {
					t.Fatalf("got %v, want a refusal: transformers fails to load it", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.Join(m.Warnings, "\n"), "is that of the class") {
				warned++
			}
			tokenizer, err := tokenize.Open(m.TokenizerJSON, tokenize.Options{MaxTokens: 500})
			if err != nil {
				t.Fatal(err)
			}
			defer tokenizer.Close()
			var got tokenize.Tokens
			if err := tokenizer.Encode(t.Context(), &texts, docs, &got); err != nil {
				t.Fatal(err)
			}
			for i, want := range c.IDs {
				if diff := cmp.Diff(want, got.At(i)); diff != "" {
					t.Errorf("%q (- transformers, + got):\n%s", reference.Texts[i], diff)
				}
			}
		})
	}
	if warned < 20 {
		t.Errorf("%d warnings that the file is not what the class makes of it, want at least 20", warned)
	}
}

// What a class cannot make of a folder is refused, and so is cutting at the left.
func TestTokenizerClassRefuses(t *testing.T) {
	for name, config := range map[string]string{
		"a class with another model": `{"tokenizer_class":"RobertaTokenizerFast"}`,
		"a token that is missing":    `{"tokenizer_class":"BertTokenizer","cls_token":"<nowhere>"}`,
		"cutting at the left":        `{"truncation_side":"left"}`,
		"a class that is no string":  `{"tokenizer_class":1}`,
	} {
		dir := filepath.Join(t.TempDir(), "model")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "zoo", "bert-cls-one-layer"))); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "tokenizer_config.json", config)
		if _, err := Open(dir, Options{}); !fault.Is(err, fault.ModelRefused) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

// SentencePiece's map is kept by the classes that have one, wherever in the
// normalizer it stands, and old spellings are no difference.
func TestTokenizerClassKeepsMaps(t *testing.T) {
	charsmap := `{"type":"Precompiled","precompiled_charsmap":"AAAA"}`
	for have, want := range map[string]string{
		charsmap: charsmap,
		`{"type":"Sequence","normalizers":[{"type":"NFC"},` + charsmap + `]}`: charsmap,
		`{"type":"NFKC"}`: `null`,
	} {
		tokenizer := map[string]json.RawMessage{
			"model":          json.RawMessage(`{"type":"Unigram","unk_id":3,"vocab":[["<s>",0],["<pad>",0],["</s>",0],["<unk>",0]]}`),
			"normalizer":     json.RawMessage(have),
			"pre_tokenizer":  json.RawMessage(`{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace","replacement":"▁","str_rep":"▁","add_prefix_space":true}]}`),
			"post_processor": json.RawMessage(`{"type":"RobertaProcessing","cls":["<s>",0],"sep":["</s>",2]}`),
		}
		parts, err := classes["XLMRobertaTokenizer"].rebuild(tokenizerConfig{}, tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		if have == want && len(parts) > 0 {
			t.Errorf("%s: changed %v", have, parts)
		}
		var got, as any
		if json.Unmarshal(tokenizer["normalizer"], &got) != nil || json.Unmarshal([]byte(want), &as) != nil {
			t.Fatal("no JSON")
		}
		if diff := cmp.Diff(as, got); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", have, diff)
		}
	}
}
