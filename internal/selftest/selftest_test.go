package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"
	"localembed/internal/testenv"
	"localembed/internal/tokenize"
	"localembed/models"
)

// made is a device whose vectors are made of the ids, and of whatever else a test
// lets into them.
type made struct {
	calls int
	extra func(ids []int64, items, length int, lengths []int32, call int) float32
}

func (*made) Name() string { return "made" }

func (d *made) Run(ids []int64, items, length int, lengths []int32, out []float32) error {
	d.calls++
	for i := range items {
		n := length
		if lengths != nil {
			n = int(lengths[i])
		}
		out[2*i], out[2*i+1] = 0, float32(n)
		for j, id := range ids[i*length : i*length+n] {
			out[2*i] += float32(id) * float32(j%5)
		}
		if d.extra != nil {
			out[2*i] += d.extra(ids, items, length, lengths, d.calls)
		}
	}
	return nil
}

func minilm(t *testing.T) (*models.Model, *tokenize.Tokenizer) {
	t.Helper()
	return open(t, testenv.Model(t), models.Options{})
}

func open(t *testing.T, dir string, o models.Options) (*models.Model, *tokenize.Tokenizer) {
	t.Helper()
	m, err := models.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenize.Open(m.TokenizerJSON, tokenize.Options{MaxTokens: m.Recipe.MaxTokens, Prompt: m.Recipe.Prompt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tok.Close)
	return m, tok
}

func TestLevels(t *testing.T) {
	_, tok := minilm(t)
	for name, c := range map[string]struct {
		extra func(ids []int64, items, length int, lengths []int32, call int) float32
		want  Level
	}{
		"pure": {nil, AnyBatch},
		"number of texts": {func(_ []int64, items, _ int, _ []int32, _ int) float32 {
			return float32(items) / 1024
		}, SameBatch},
		"padding": {func(_ []int64, _, _ int, lengths []int32, _ int) float32 {
			return float32(len(lengths)) / 1024
		}, SameBatch},
		"a neighbour's ids": {func(ids []int64, items, length int, _ []int32, _ int) float32 {
			var sum int64
			for j, id := range ids[(items-1)*length:] {
				sum += id * int64(j)
			}
			return float32(sum % 97)
		}, Dependent},
		"time": {func(_ []int64, _, _ int, _ []int32, call int) float32 { return float32(call) }, Dependent},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(context.Background(), &made{extra: c.extra}, Options{Tokenizer: tok, Dims: 2, Pads: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Level != c.want || (r.Difference > 0) != (c.want != AnyBatch) {
				t.Errorf("got %q and a difference of %g, want %q", r.Level, r.Difference, c.want)
			}
		})
	}
}

// Padded batches count for the level only where the run makes them.
func TestPaddedApart(t *testing.T) {
	_, tok := minilm(t)
	d := &made{extra: func(_ []int64, _, _ int, lengths []int32, _ int) float32 { return float32(len(lengths)) }}
	for _, o := range []Options{{}, {Padded: true}, {Pads: true}} {
		o.Tokenizer, o.Dims = tok, 2
		r, err := Run(context.Background(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		if (r.Level == AnyBatch) == o.Pads || (r.Padded == nil) != (!o.Padded && !o.Pads) || r.Padded != nil && r.Padded.Level != SameBatch {
			t.Errorf("%+v: got %+v", o, r)
		}
	}
}

func TestNotFinite(t *testing.T) {
	_, tok := minilm(t)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		d := &made{extra: func(_ []int64, items, _ int, _ []int32, _ int) float32 {
			if items > 1 {
				return float32(bad)
			}
			return 0
		}}
		_, err := Run(context.Background(), d, Options{Tokenizer: tok, Dims: 2})
		if !fault.Is(err, fault.BadVectors) || fault.Of(err).Hint == "" {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

// The graph that is built for MiniLM, on one thread, is what the pipeline's promises need.
func TestMiniLM(t *testing.T) {
	m, tok := minilm(t)
	s, err := loadORT(t).OpenCPU("cpu:0", m, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, thorough := range []bool{false, true} {
		r, err := Run(context.Background(), s, Options{Tokenizer: tok, Dims: m.Recipe.Dims, Padded: thorough, Thorough: thorough})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("thorough %t: %q, padded %+v, %.2f s", thorough, r.Level, r.Padded, r.Seconds)
		if r.Level != AnyBatch || r.Difference != 0 {
			t.Errorf("got %+v", r)
		}
		if r.Padded != nil && (r.Padded.Level == Dependent || r.Padded.Difference > 1e-6) {
			t.Errorf("padded: got %+v", r.Padded)
		}
	}
}

// A pooling that leaves the prompt out has something left in every tested text.
func TestPromptLeftOut(t *testing.T) {
	rt := loadORT(t)
	for _, name := range []string{"bert-exclude-prompt", "roberta-exclude-prompt"} {
		m, tok := open(t, filepath.Join(testenv.Root(t), "models", "testdata", "zoo", name), models.Options{Tokenize: tokenize.IDs})
		s, err := rt.OpenCPU("cpu:0", m, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), s, Options{Tokenizer: tok, Dims: m.Recipe.Dims, Padded: true, Thorough: true})
		if err != nil || r.Level != AnyBatch {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
		_ = s.Close()
	}
}

// withReference is a copy of a small folder that holds its reference vectors, changed.
func withReference(t *testing.T, change func(ref map[string]any, call map[string]any)) string {
	t.Helper()
	from := filepath.Join(testenv.Root(t), "models", "testdata", "zoo", "bert-mean-reference")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(from + ".reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var ref map[string]any
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	change(ref, ref["calls"].([]any)[0].(map[string]any))
	if b, err = json.Marshal(ref); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ReferenceFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReferenceVectors(t *testing.T) {
	rt := loadORT(t)
	at := func(v any, i int) []any { return v.([]any)[i].([]any) }
	for name, c := range map[string]struct {
		change func(ref map[string]any, call map[string]any)
		want   string // in the refusal; "" where the model is accepted
		texts  int    // that are compared
	}{
		"as it is":       {func(_, _ map[string]any) {}, "", 10},
		"vectors alone":  {func(_, c map[string]any) { delete(c, "n_tokens"); delete(c, "truncated"); delete(c, "input_ids") }, "", 10},
		"another prompt": {func(_, c map[string]any) { c["prompt_text"] = "x " }, "", 0},
		"another limit":  {func(ref, _ map[string]any) { ref["max_seq_length"] = 63 }, "", 0},
		"a component":    {func(_, c map[string]any) { at(c["embeddings"], 3)[0] = 5.0 }, "at text 3, ", 0},
		"a length": {func(_, c map[string]any) {
			for i, x := range at(c["embeddings"], 1) {
				at(c["embeddings"], 1)[i] = x.(float64) * 1.01
			}
		}, "0.9901 times as long", 0},
		"tokens":      {func(_, c map[string]any) { c["n_tokens"].([]any)[0] = 9.0 }, "it has 3 tokens instead of 9", 0},
		"ids":         {func(_, c map[string]any) { at(c["input_ids"], 2)[4] = 1.0 }, "it has other token ids", 0},
		"cut":         {func(_, c map[string]any) { c["truncated"].([]any)[0] = true }, "that it is cut is false instead of true", 0},
		"a text less": {func(ref, _ map[string]any) { ref["texts"] = ref["texts"].([]any)[1:] }, "call 0 has not one entry for each of the 9 texts", 0},
		"no vectors":  {func(_, c map[string]any) { c["embeddings"] = "none" }, "it cannot be read", 0},
		"odd vectors": {func(_, c map[string]any) { c["embeddings"].([]any)[2] = []any{1.0} }, "vectors of different lengths", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, tok := open(t, withReference(t, c.change), models.Options{})
			s, err := rt.OpenCPU("cpu:0", m, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var r Result
			ref, err := FindReference(m.Dir, m.Recipe)
			if err == nil {
				r, err = Run(context.Background(), s, Options{Tokenizer: tok, Dims: m.Recipe.Dims, Reference: ref})
			}
			switch {
			case c.want != "":
				if f := fault.Of(err); f == nil || f.Class != fault.ModelRefused || f.Hint == "" || !strings.Contains(f.Message, c.want) {
					t.Errorf("got %v, want a refusal with %q", err, c.want)
				}
			case err != nil:
				t.Error(err)
			case (r.Reference == nil) != (c.texts == 0) || r.Reference != nil && (r.Reference.Texts != c.texts || r.Reference.MinCosine < 0.999999):
				t.Errorf("compared %+v, want %d texts", r.Reference, c.texts)
			}
		})
	}
}

// A test ends with the run that it belongs to, before the device's next batch.
func TestATestCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	d := &made{}
	if err := (until{ctx, d}).Run([]int64{1}, 1, 1, nil, make([]float32, 4)); !errors.Is(err, why) || d.calls != 0 {
		t.Errorf("got %v after %d batches", err, d.calls)
	}
}
