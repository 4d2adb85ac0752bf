package selftest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/sortpack"
	"localembed/internal/testenv"
	"localembed/internal/tokenize"
	"localembed/models"
)

var update = flag.Bool("update", false, "write the tables of cosines into docs/models.md")

// zooReference adds what only the zoo's files say.
type zooReference struct {
	Reference
	Expect string `json:"expect"`
	Reason string `json:"reason"`
}

// TestZoo runs every call of every reference file of tiny model folders: those of
// this repository, those that may lie beside it, and those that LOCALEMBED_ZOO names.
func TestZoo(t *testing.T) {
	rt := loadORT(t)
	own := filepath.Join(testenv.Root(t), "models", "testdata", "zoo")
	var rows []string
	zoos := []string{own, filepath.Join(testenv.Root(t), "..", "shared", "zoo")}
	if more := os.Getenv("LOCALEMBED_ZOO"); more != "" {
		zoos = append(zoos, more)
	}
	for _, zoo := range zoos {
		files, err := filepath.Glob(filepath.Join(zoo, "*.reference.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Logf("no reference files in %s: its folders are not tested", zoo)
		}
		for _, file := range files {
			dir := strings.TrimSuffix(file, ".reference.json")
			t.Run(filepath.Base(dir), func(t *testing.T) {
				rows = append(rows, testFolder(t, rt, dir, file, zoo == own)...)
			})
		}
	}
	table := "| folder | call | texts | least cosine, exact batches | padded | largest difference |\n|---|---|---|---|---|---|\n" + strings.Join(rows, "")
	t.Log("\n" + table)
	if *update {
		writeTable(t, "vectors", table)
	}
}

func testFolder(t *testing.T, rt *onnx.Runtime, dir, file string, tight bool) (rows []string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var z zooReference
	if err := json.Unmarshal(b, &z); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	if z.Expect == "refuse" {
		f := refused(t, dir, "")
		rows = append(rows, fmt.Sprintf("| %s | | | refused: %s | | |\n", name, f.Message))
		if len(z.Options) == 0 {
			return rows
		}
	}
	for _, c := range z.Calls {
		m := measure(t, rt, dir, &z, c)
		args := ""
		if string(c.Args) != "{}" && c.Args != nil {
			args = " " + strings.ReplaceAll(string(c.Args), "\n", "")
		}
		// Rounding leaves 1e-6; another activation, order or position leaves more than the limit.
		if tight && m.difference > 2e-5 {
			t.Errorf("%s%s: a vector is off by %.2g of its length", c.Call, args, m.difference)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s%s | %d | %.7f | %.7f | %.1e |\n", name, c.Call, args, len(z.Texts), m.exact, m.padded, m.difference))
	}
	return rows
}

// refused opens a folder that must be refused, in a sentence that has the word.
func refused(t *testing.T, dir, word string) *fault.Error {
	t.Helper()
	_, err := models.Open(dir, models.Options{})
	f := fault.Of(err)
	if f == nil || f.Class != fault.ModelRefused || f.Hint == "" || !strings.Contains(f.Message, word) {
		t.Fatalf("got %v, want a refusal with the word %q", err, word)
	}
	return f
}

// options are the flags that a call stands for.
func (z *zooReference) options(t *testing.T, c Call) models.Options {
	var given struct {
		Pooling   string `json:"pooling"`
		Normalize *bool  `json:"normalize"`
	}
	var args struct {
		Dims      int  `json:"truncate_dim"`
		Normalize bool `json:"normalize_embeddings"`
	}
	for raw, v := range map[*json.RawMessage]any{&z.Options: &given, &c.Args: &args} {
		if len(*raw) > 0 {
			if err := json.Unmarshal(*raw, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := models.Options{Tokenize: tokenize.IDs, Pooling: given.Pooling, Normalize: given.Normalize, Dims: args.Dims}
	if args.Normalize {
		yes := true
		o.Normalize = &yes
	}
	switch c.Call {
	case "encode_document":
	case "encode_query":
		o.Query = true
	default:
		o.Prompt = &c.Prompt
	}
	return o
}

// measured is what a call gave.
type measured struct{ exact, padded, difference float64 }

// measure embeds the texts in another order, in exact and in padded batches as a run
// would cut them.
func measure(t *testing.T, rt *onnx.Runtime, dir string, z *zooReference, c Call) measured {
	t.Helper()
	m, err := models.Open(dir, z.options(t, c))
	if err != nil {
		t.Fatal(err)
	}
	r := m.Recipe
	if r.Prompt != c.Prompt || r.MaxTokens != z.MaxSeqLength || r.Dims != len(c.Embeddings[0]) {
		t.Errorf("%s: prompt %q, limit %d, %d components; want %q, %d, %d", c.Call, r.Prompt, r.MaxTokens, r.Dims, c.Prompt, z.MaxSeqLength, len(c.Embeddings[0]))
	}
	tok, err := tokenize.Open(m.TokenizerJSON, tokenize.Options{MaxTokens: r.MaxTokens, Prompt: r.Prompt})
	if err != nil {
		t.Fatal(err)
	}
	defer tok.Close()
	s, err := rt.OpenCPU("cpu:0", m, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	z.lengths = !r.Normalize
	te := &test{d: s, o: Options{Tokenizer: tok, Dims: r.Dims}}
	ids, truncated, err := te.tokenize(context.Background(), z.Texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if err := z.checkTokens(c, i, ids[i], truncated[i]); err != nil {
			t.Errorf("%s: %v", c.Call, err)
		}
	}
	order := rand.New(rand.NewPCG(5, 6)).Perm(len(ids))
	lengths := make([]int32, len(ids))
	for i, text := range order {
		lengths[i] = int32(len(ids[text]))
	}
	got := measured{1, 1, 0}
	exact := sortpack.Limits{Tokens: 512, Items: 8, Cells: 1 << 20, MinTokens: 1}
	for _, b := range sortpack.Plan(lengths, exact) {
		got.exact = min(got.exact, z.batch(t, te, c, order, ids, b.Docs, 0, &got.difference))
	}
	for docs := range slices.Chunk(order, 5) {
		var batch []int32
		longest := 0
		for _, text := range docs {
			batch = append(batch, int32(text))
			longest = max(longest, len(ids[text]))
		}
		got.padded = min(got.padded, z.batch(t, te, c, nil, ids, batch, longest, &got.difference))
	}
	return got
}

// batch runs one batch and compares its vectors; longest is 0 where it is exact. It returns
// the least cosine. With an order, docs are places in it.
func (z *zooReference) batch(t *testing.T, te *test, c Call, order []int, ids [][]int64, docs []int32, longest int, difference *float64) float64 {
	t.Helper()
	var rows [][]int64
	var lengths []int32
	var texts []int
	for _, d := range docs {
		text := int(d)
		if order != nil {
			text = order[d]
		}
		row := ids[text]
		if longest > 0 {
			lengths = append(lengths, int32(len(row)))
			row = append(slices.Clone(row), make([]int64, longest-len(row))...)
		}
		texts, rows = append(texts, text), append(rows, row)
	}
	vectors, err := te.run(rows, lengths)
	if err != nil {
		t.Fatal(err)
	}
	least := 1.0
	for i, v := range vectors {
		cosine, err := z.checkVector(c, texts[i], v)
		if err != nil {
			t.Errorf("%s, padded %t: %v", c.Call, longest > 0, err)
			continue
		}
		least = min(least, cosine)
		*difference = max(*difference, distance(v, c.Embeddings[texts[i]], z.lengths))
	}
	return least
}
