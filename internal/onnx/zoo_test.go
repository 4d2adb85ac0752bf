package onnx

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"localembed/internal/fault"
	"localembed/models"
)

// reference is what sentence-transformers gave for a folder of the zoo.
type reference struct {
	Texts        []string `json:"texts"`
	MinCosine    float64  `json:"min_cosine"`
	MaxSeqLength int      `json:"max_seq_length"`
	Calls        []struct {
		PromptText string      `json:"prompt_text"`
		Embeddings [][]float64 `json:"embeddings"`
		InputIDs   [][]int64   `json:"input_ids"` // of the first call only
	} `json:"calls"`
}

// zoo finds a folder of tiny models, or skips.
func zoo(t *testing.T, name string) string {
	t.Helper()
	dir := shared(t, "zoo", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the tiny model folders are not on this machine: %v", err)
	}
	return dir
}

func TestZooMatchesReference(t *testing.T) {
	yes := true
	none := ""
	for _, c := range []struct {
		folder string
		o      models.Options
	}{
		{"bert-cls-norm", models.Options{}},
		{"bert-cls-norm", models.Options{ONNX: true}},
		{"bert-mean-bakedpad", models.Options{}},
		{"bert-mean-bakedpad", models.Options{ONNX: true}},
		{"bert-e5-prompts", models.Options{}},
		{"onnx-only-fp16-io32", models.Options{}},
		{"onnx-only-xenova", models.Options{Pooling: "mean", Normalize: &yes}},
		{"bert-bare-no-pooling", models.Options{Pooling: "cls", Normalize: &yes}},
		{"xlmr-unigram-external", models.Options{ONNX: true}},
		{"xlmr-unigram-external", models.Options{}},
		{"roberta-bytebpe-nonorm", models.Options{}},
		{"roberta-bytebpe-nonorm", models.Options{ONNX: true}},
		{"mpnet-sentence-embedding-onnx", models.Options{}},
		{"mpnet-sentence-embedding-onnx", models.Options{ONNX: true}},
		{"mpnet-sentence-embedding-onnx", models.Options{ONNX: true, Pooling: "mean", Prompt: &none}},
		{"bert-dense-tanh", models.Options{}},
		{"albert-meansqrt-sharded", models.Options{}},
		{"electra-weightedmean-fp16", models.Options{}},
		{"distilbert-max-lowercase", models.Options{}},
	} {
		name := c.folder
		if c.o.ONNX {
			name += ",onnx"
		}
		if c.o.Prompt != nil {
			name += ",hidden-states"
		}
		t.Run(name, func(t *testing.T) {
			dir := zoo(t, c.folder)
			b, err := os.ReadFile(dir + ".reference.json")
			if err != nil {
				t.Fatal(err)
			}
			var ref reference
			if err := json.Unmarshal(b, &ref); err != nil {
				t.Fatal(err)
			}
			m, err := models.Open(dir, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if m.Recipe.MaxTokens != ref.MaxSeqLength {
				t.Errorf("limit of %d tokens, want %d", m.Recipe.MaxTokens, ref.MaxSeqLength)
			}
			if m.FLOPsPerToken < 10_000 || m.FLOPsPerToken > 100_000 {
				t.Errorf("%v FLOP a token of a model with two to four layers of 32", m.FLOPsPerToken)
			}
			call := ref.Calls[0]
			if m.Recipe.Prompt != call.PromptText {
				t.Errorf("prompt %q, want %q", m.Recipe.Prompt, call.PromptText)
			}
			s := cpu(t, load(t), m)
			longest := 0
			for _, ids := range call.InputIDs {
				longest = max(longest, len(ids))
			}
			padded := make([]int64, len(call.InputIDs)*longest)
			lengths := make([]int32, len(call.InputIDs))
			vectors := make([]float32, len(call.InputIDs)*m.Recipe.Dims)
			for i, ids := range call.InputIDs {
				copy(padded[i*longest:], ids)
				lengths[i] = int32(len(ids))
				v := make([]float32, m.Recipe.Dims)
				if err := s.Run(ids, 1, len(ids), nil, v); err != nil {
					t.Fatal(err)
				}
				near(t, "exact", i, v, call.Embeddings[i], ref.MinCosine)
			}
			if err := s.Run(padded, len(lengths), longest, lengths, vectors); err != nil {
				t.Fatal(err)
			}
			for i, want := range call.Embeddings {
				near(t, "padded", i, vectors[i*m.Recipe.Dims:(i+1)*m.Recipe.Dims], want, ref.MinCosine)
			}
		})
	}
}

// near compares direction and length.
func near(t *testing.T, how string, text int, got []float32, want []float64, minCosine float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d components, want %d", len(got), len(want))
	}
	w := make([]float32, len(want))
	var gg, ww float64
	for i, v := range want {
		w[i] = float32(v)
		gg += float64(got[i]) * float64(got[i])
		ww += v * v
	}
	if c := cosine(got, w); c < minCosine {
		t.Errorf("%s, text %d: cosine %.7f", how, text, c)
	}
	tolerance := 1e-3
	if minCosine < 0.9999 {
		tolerance = 1e-2
	}
	if math.Abs(math.Sqrt(gg/ww)-1) > tolerance {
		t.Errorf("%s, text %d: length %g, want %g", how, text, math.Sqrt(gg), math.Sqrt(ww))
	}
}

func TestZooRefusals(t *testing.T) {
	for folder, want := range map[string]string{
		"bert-bare-no-pooling":  "nothing in the folder says how token vectors become one vector: it has no modules.json",
		"onnx-only-xenova":      "nothing in the folder says how token vectors become one vector: it has no modules.json",
		"bert-pytorch-bin-only": "the weights are only there as pytorch_model.bin, which localembed does not read because such a file can run code when it is opened",
	} {
		t.Run(folder, func(t *testing.T) {
			_, err := models.Open(zoo(t, folder), models.Options{})
			f := fault.Of(err)
			if f == nil || f.Class != fault.ModelRefused || f.Message != want || f.Hint == "" {
				t.Errorf("got %#v, want the message %q", f, want)
			}
		})
	}
}

// An ONNX file and its external data as links into another folder, under other
// names, as a hub's cache lays them out.
func TestLinkedExternalData(t *testing.T) {
	from := zoo(t, "xlmr-unigram-external")
	dir, blobs := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "onnx"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"onnx/model.onnx", "onnx/model.onnx_data"} {
		blob := filepath.Join(blobs, string(rune('a'+i)))
		if err := os.Rename(filepath.Join(dir, name), blob); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(blob, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	rt := load(t)
	var got [2][]float32
	for i, folder := range []string{from, dir} {
		m, err := models.Open(folder, models.Options{ONNX: true})
		if err != nil {
			t.Fatal(err)
		}
		got[i] = make([]float32, m.Recipe.Dims)
		if err := cpu(t, rt, m).Run([]int64{0, 5, 9, 2}, 1, 4, nil, got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got[0], got[1]) {
		t.Error("the linked folder gives other vectors")
	}
}
