package tokenize

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/testenv"
)

// The lengths that sentence-transformers saw for the same texts and model.
func TestReferenceLengths(t *testing.T) {
	type text struct {
		ID   string `parquet:"id"`
		Text string `parquet:"text"`
	}
	type vector struct {
		ID        string `parquet:"id"`
		NTokens   int32  `parquet:"n_tokens"`
		Truncated bool   `parquet:"truncated"`
	}
	corpus, err := parquet.ReadFile[text](testenv.Shared(t, "reference", "debian_3k.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := parquet.ReadFile[vector](testenv.Shared(t, "reference", "minilm_debian_3k.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	var texts column.Arena
	for _, row := range corpus {
		texts.Append([]byte(row.Text))
	}
	var got Tokens
	encode(t, miniLM(t, Options{MaxTokens: 256}), &texts, &got)
	if got.Len() != len(want) {
		t.Fatalf("%d documents, the reference has %d", got.Len(), len(want))
	}
	truncated := 0
	for i, w := range want {
		g := vector{corpus[i].ID, int32(len(got.At(i))), got.Truncated[i]}
		if g != w {
			t.Fatalf("row %d: got %+v, the reference says %+v", i, g, w)
		}
		if w.Truncated {
			truncated++
		}
	}
	if truncated == 0 {
		t.Fatal("no text of the reference passes the limit: it tests no truncation")
	}
}

// The ids that sentence-transformers saw, for each family of tokenizers.
func TestReferenceIDs(t *testing.T) {
	// These ask for a lower-casing step that tokenizer.json does not have.
	lowerCased := map[string]bool{"distilbert-max-lowercase": true}

	files, err := filepath.Glob(filepath.Join(testenv.Shared(t, "zoo"), "*.reference.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reference files: %v", err)
	}
	for _, file := range files {
		folder := strings.TrimSuffix(file, ".reference.json")
		name := filepath.Base(folder)
		if lowerCased[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var reference struct {
				MaxTokens int      `json:"max_seq_length"`
				Texts     []string `json:"texts"`
				Calls     []struct {
					Prompt    string     `json:"prompt_text"`
					NTokens   []int      `json:"n_tokens"`
					Truncated []bool     `json:"truncated"`
					InputIDs  [][]uint32 `json:"input_ids"`
				} `json:"calls"`
			}
			readJSON(t, file, &reference)
			if len(reference.Calls) == 0 {
				t.Skip("skipped: the reference refuses this folder")
			}
			var texts column.Arena
			for _, s := range reference.Texts {
				texts.Append([]byte(s))
			}
			tokenizerJSON, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range reference.Calls {
				tokenizer := open(t, tokenizerJSON, Options{MaxTokens: reference.MaxTokens, Prompt: call.Prompt})
				var got Tokens
				encode(t, tokenizer, &texts, &got)
				for i := range reference.Texts {
					ids := got.At(i)
					if len(ids) != call.NTokens[i] || got.Truncated[i] != call.Truncated[i] {
						t.Errorf("text %d: %d tokens, truncated %v; the reference says %d, %v",
							i, len(ids), got.Truncated[i], call.NTokens[i], call.Truncated[i])
					}
					if call.InputIDs != nil {
						if diff := cmp.Diff(call.InputIDs[i], ids); diff != "" {
							t.Errorf("text %d (- reference, + got):\n%s", i, diff)
						}
					}
				}
			}
		})
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}
