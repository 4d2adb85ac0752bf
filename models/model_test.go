package models

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/modeltest"
	"localembed/models/onnxpb"
)

// tiny writes a good folder.
func tiny(t testing.TB, change func(b *modeltest.BERT)) string {
	t.Helper()
	b := modeltest.New()
	if change != nil {
		change(b)
	}
	b.Fill()
	return b.Write(t)
}

// put writes a file of a folder.
func put(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// edit changes fields of a JSON object in a folder; nil removes one.
func edit(t testing.TB, dir, name string, fields map[string]any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for k, v := range fields {
		all[k] = v
		if v == nil {
			delete(all, k)
		}
	}
	if b, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	put(t, dir, name, string(b))
}

func TestOpen(t *testing.T) {
	m, err := Open(tiny(t, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := m.Recipe
	if r.Pooling != "mean" || !r.Normalize || r.Prompt != "" || r.MaxTokens != 20 || r.Dims != 24 || r.Precision != "fp32" || len(r.ModelDigest) != 64 {
		t.Errorf("recipe %+v", r)
	}
	// Two layers of four products 24×24 and two 24×40, two operations each.
	if m.VocabSize != 50 || m.FLOPsPerToken != 2*2*(4*24*24+2*24*40) || len(m.Warnings) != 0 {
		t.Errorf("vocabulary %d, %v FLOP a token, warnings %q", m.VocabSize, m.FLOPsPerToken, m.Warnings)
	}
	g, err := m.Graph(false)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Inputs) != 1 || g.Dim != 24 || g.Vocab != 50 {
		t.Errorf("inputs %v, %d components, vocabulary %d", g.Inputs, g.Dim, g.Vocab)
	}
	if len(g.Proto) > 1<<15 {
		t.Errorf("the graph has %d bytes: weights were copied into it", len(g.Proto))
	}
	masked, err := m.Graph(true)
	if err != nil {
		t.Fatal(err)
	}
	if len(masked.Inputs) != 2 || masked.Inputs[1].Role != Mask {
		t.Errorf("inputs %v", masked.Inputs)
	}
}

// Each case is one sentence that names what is wrong, where, and what to do.
func TestOpenRefuses(t *testing.T) {
	config := func(fields map[string]any) func(*testing.T, string) {
		return func(t *testing.T, dir string) { edit(t, dir, "config.json", fields) }
	}
	file := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { put(t, dir, name, content) }
	}
	without := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tensor := func(name string, change func(*modeltest.BERT)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			b := modeltest.New()
			b.Fill()
			if change != nil {
				change(b)
			} else {
				delete(b.Weights, name)
			}
			if err := os.Rename(filepath.Join(b.Write(t), "model.safetensors"), filepath.Join(dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		o      Options
		file   string // ends the file that is named
		want   string
	}{
		"architecture":     {config(map[string]any{"model_type": "t5"}), Options{}, "config.json", `the architecture "t5" is not supported`},
		"activation":       {config(map[string]any{"hidden_act": "silu"}), Options{}, "config.json", `the activation "silu" (hidden_act) is not supported`},
		"positions":        {config(map[string]any{"position_embedding_type": "alibi"}), Options{}, "config.json", `position_embedding_type "alibi" is not supported`},
		"decoder":          {config(map[string]any{"is_decoder": true}), Options{}, "config.json", "a decoder is not supported"},
		"quantized":        {config(map[string]any{"quantization_config": map[string]int{"bits": 4}}), Options{}, "config.json", "the weights are quantized"},
		"no layers":        {config(map[string]any{"num_hidden_layers": nil}), Options{}, "config.json", "num_hidden_layers is 0"},
		"heads":            {config(map[string]any{"num_attention_heads": 5}), Options{}, "config.json", "hidden_size 24 is not a multiple of num_attention_heads 5"},
		"no config":        {without("config.json"), Options{}, "", "the folder has no config.json"},
		"config is a list": {file("config.json", "[]"), Options{}, "config.json", "it is not the JSON that such a file holds"},
		"config is cut":    {file("config.json", `{"model_type": "be`), Options{}, "config.json", "it is not the JSON that such a file holds"},
		"more layers":      {config(map[string]any{"num_hidden_layers": 3}), Options{}, "model.safetensors", `the tensor "encoder.layer.2.attention.self.query.weight" is missing`},
		"many more layers": {config(map[string]any{"num_hidden_layers": 1 << 24}), Options{}, "model.safetensors", `the tensor "encoder.layer.2.attention.self.query.weight" is missing`},
		"fewer layers":     {config(map[string]any{"num_hidden_layers": 1}), Options{}, "model.safetensors", "more layers than the 1 of config.json"},
		"shape":            {config(map[string]any{"intermediate_size": 41}), Options{}, "model.safetensors", `"encoder.layer.0.intermediate.dense.weight" has the shape [40 24] where config.json asks for [41 24]`},
		"vocabulary":       {config(map[string]any{"vocab_size": 51}), Options{}, "model.safetensors", `"embeddings.word_embeddings.weight" has the shape [50 24] where config.json asks for [51 24]`},
		"tensor missing":   {tensor("encoder.layer.1.output.dense.bias", nil), Options{}, "model.safetensors", `the tensor "encoder.layer.1.output.dense.bias" is missing`},
		"other model":      {tensor("embeddings.word_embeddings.weight", nil), Options{}, "model.safetensors", `the tensor "embeddings.word_embeddings.weight" is missing`},
		"weights cut off":  {func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "model.safetensors"), -1) }, Options{}, "model.safetensors", "cut off"},
		"header cut off":   {func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "model.safetensors"), 100) }, Options{}, "model.safetensors", "cut off"},
		"pointer file":     {file("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"), Options{}, "model.safetensors", "more than the 100000000 that the format allows"},
		"pickle only": {func(t *testing.T, dir string) {
			without("model.safetensors")(t, dir)
			put(t, dir, "pytorch_model.bin", "x")
		}, Options{}, "", "the weights are only there as pytorch_model.bin, which localembed does not read because such a file can run code"},
		"shards": {func(t *testing.T, dir string) {
			without("model.safetensors")(t, dir)
			put(t, dir, "model.safetensors.index.json", "{}")
		}, Options{}, "", "spread over several safetensors files"},
		"no weights":        {without("model.safetensors"), Options{}, "", "the folder holds no weights"},
		"no tokenizer":      {without("tokenizer.json"), Options{}, "tokenizer.json", "the file is missing"},
		"no pooling config": {without("1_Pooling"), Options{}, "1_Pooling/config.json", "the configuration of the pooling is missing"},
		"bare":              {without("1_Pooling", "modules.json"), Options{}, "", "nothing in the folder says how token vectors become one vector"},
		"bare, half said":   {without("1_Pooling", "modules.json"), Options{Pooling: "cls"}, "", "nothing in the folder says"},
		"pooling known":     {without("modules.json"), Options{}, "", "nothing in the folder says"},
		"two poolings":      {file("1_Pooling/config.json", `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}`), Options{}, "1_Pooling/config.json", `the pooling "cls+mean" is not supported`},
		"pooling list":      {file("1_Pooling/config.json", `{"pooling_mode":["max"]}`), Options{}, "1_Pooling/config.json", `the pooling "max" is not supported`},
		"pooling is 3":      {file("1_Pooling/config.json", `{"pooling_mode":3}`), Options{}, "1_Pooling/config.json", "neither a name nor a list"},
		"module":            {file("modules.json", `[{"path":"","type":"x.Transformer"},{"path":"1_Pooling","type":"x.Pooling"},{"path":"2","type":"x.LSTM"}]`), Options{}, "modules.json", `module 2 is "x.LSTM"`},
		"order":             {file("modules.json", `[{"path":"1_Pooling","type":"x.Pooling"},{"path":"","type":"x.Transformer"}]`), Options{}, "modules.json", `module 0 is "x.Pooling"`},
		"no modules":        {file("modules.json", `[]`), Options{}, "modules.json", "it has no Transformer followed by a Pooling"},
		"path out":          {file("modules.json", `[{"path":"../x","type":"x.Transformer"}]`), Options{}, "modules.json", `the path "../x" of module 0 leads out of the folder`},
		"absolute path":     {file("modules.json", `[{"path":"/etc","type":"x.Transformer"}]`), Options{}, "modules.json", `the path "/etc"`},
		"prompt left out": {func(t *testing.T, dir string) {
			put(t, dir, "1_Pooling/config.json", `{"pooling_mode":"mean","include_prompt":false}`)
			put(t, dir, promptsFile, `{"prompts":{"passage":"p: "}}`)
		}, Options{}, "1_Pooling/config.json", "include_prompt is false"},
		"truncate_dim": {file(promptsFile, `{"truncate_dim":-1}`), Options{}, promptsFile, "truncate_dim is -1"},
		"normalizer": {func(t *testing.T, dir string) {
			put(t, dir, "sentence_bert_config.json", `{"do_lower_case":true}`)
			put(t, dir, "tokenizer.json", `{"normalizer":7}`)
		}, Options{}, "tokenizer.json", "its normalizer cannot be read"},
		"no ONNX file": {nil, Options{ONNX: true}, "", "the folder has no onnx/model.onnx or model.onnx"},
		"ONNX is text": {file("model.onnx", "version https://git-lfs"), Options{ONNX: true}, "model.onnx", "it is not an ONNX model"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t, nil)
			if c.change != nil {
				c.change(t, dir)
			}
			_, err := Open(dir, c.o)
			f := fault.Of(err)
			if f == nil || f.Class != fault.ModelRefused || !strings.HasSuffix(f.File, c.file) || f.File == "" || !strings.Contains(f.Error(), c.want) || f.Hint == "" {
				t.Errorf("got %v (file %q)", f, func() string {
					if f == nil {
						return ""
					}
					return f.File
				}())
			}
			if f != nil && strings.Contains(f.Error(), "\n") {
				t.Errorf("%q is more than a sentence", f.Error())
			}
		})
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if size < 0 {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += st.Size()
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// What the caller got wrong is a usage error, not the model's fault.
func TestOpenUsage(t *testing.T) {
	p := "x"
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"pooling":      {Options{Pooling: "max"}, `pooling "max" is not supported`},
		"precision":    {Options{Precision: "int4"}, `precision "int4" is not supported`},
		"dims":         {Options{Dims: 25}, "--dims 25 does not fit: the model's vectors have 24 components"},
		"negative":     {Options{Dims: -1}, "--dims -1"},
		"max tokens":   {Options{MaxTokens: 21}, "--max-tokens 21 does not fit the model, which takes 3 to 20 tokens"},
		"two tokens":   {Options{MaxTokens: 2}, "--max-tokens 2 "},
		"prompt name":  {Options{PromptName: "query"}, `the folder has no prompt named "query"`},
		"both prompts": {Options{PromptName: "query", Prompt: &p}, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tiny(t, nil), c.o)
			if f := fault.Of(err); f == nil || f.Class != fault.Usage || !strings.Contains(f.Message, c.want) || f.Hint == "" {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "no"), Options{}); !fault.Is(err, fault.NoSuchFile) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := Open(os.Args[0], Options{}); !fault.Is(err, fault.Usage) {
		t.Errorf("a file: %v", err)
	}
}

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
			dir := tiny(t, nil)
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
			dir := tiny(t, nil)
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
		`{"normalizer":null,"model":1}`: `{"model":1,"normalizer":{"type":"Lowercase"}}`,
		`{"model":1}`:                   `{"model":1,"normalizer":{"type":"Lowercase"}}`,
		`{"normalizer":{"type":"NFC"}}`: `{"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"NFC"}]}}`,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend"}]}}`:     `{"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"NFC"},{"type":"Prepend"}]}}`,
		`{ "normalizer": {"type":"Lowercase"} }`:                                                   `{ "normalizer": {"type":"Lowercase"} }`,
		`{ "normalizer": {"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]}}`: `{ "normalizer": {"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]}}`,
	} {
		dir := tiny(t, nil)
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
	dir := tiny(t, nil)
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

// The digest changes with every file that decides a vector, and with nothing else.
func TestDigest(t *testing.T) {
	digest := func(dir string) string {
		t.Helper()
		m, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Recipe.ModelDigest
	}
	dir := tiny(t, nil)
	first := digest(dir)
	if again := digest(tiny(t, nil)); again != first {
		t.Error("the same files in another folder have another digest")
	}
	put(t, dir, "README.md", "x")
	put(t, dir, promptsFile, `{"prompts":{"document":"d: "}}`)
	if digest(dir) != first {
		t.Error("a file that decides no vector, or stands in the recipe, changed the digest")
	}
	seen := map[string]string{first: "nothing"}
	for _, change := range []struct{ name, content string }{
		{"tokenizer.json", `{"x":1}`},
		{"tokenizer_config.json", `{}`},
		{"sentence_bert_config.json", `{}`},
		{"1_Pooling/config.json", `{"pooling_mode":"mean" }`},
	} {
		put(t, dir, change.name, change.content)
		d := digest(dir)
		if before, ok := seen[d]; ok {
			t.Errorf("changing %s gives the digest of changing %s", change.name, before)
		}
		seen[d] = change.name
	}
	path := filepath.Join(dir, "model.safetensors")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	put(t, dir, "model.safetensors", string(b))
	if _, ok := seen[digest(dir)]; ok {
		t.Error("one bit of the weights does not change the digest")
	}
}

// external makes a graph with one tensor in a file of its own.
func external(location, offset, length string) string {
	entry := func(k, v string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: &k, Value: &v}
	}
	b, err := proto.Marshal(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
		Input:  []*onnxpb.ValueInfoProto{value("input_ids", onnxpb.TensorProto_INT64, dim("b"), dim("s"))},
		Output: []*onnxpb.ValueInfoProto{value("last_hidden_state", onnxpb.TensorProto_FLOAT, dim("b"), dim("s"), size(24))},
		Initializer: []*onnxpb.TensorProto{{
			Name: proto.String("w"), Dims: []int64{2, 2}, DataType: proto.Int32(1), DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
			ExternalData: []*onnxpb.StringStringEntryProto{entry("location", location), entry("offset", offset), entry("length", length)},
		}},
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestExternalDataStaysInside(t *testing.T) {
	for name, c := range map[string]struct{ location, offset, length, want string }{
		"good":            {"model.onnx_data", "4", "16", ""},
		"out":             {"../secret", "0", "16", "leads out of the model's folder"},
		"absolute":        {"/etc/passwd", "0", "16", "leads out of the model's folder"},
		"empty":           {"", "0", "16", "leads out of the model's folder"},
		"missing":         {"no", "0", "16", `its weights lie in "no", which is missing`},
		"past the end":    {"model.onnx_data", "5", "16", "needs 16 bytes from byte 5 on, but the file has 20"},
		"offset overflow": {"model.onnx_data", "9223372036854775807", "16", "but the file has 20"},
		"negative":        {"model.onnx_data", "-4", "16", `the offset "-4"`},
		"no number":       {"model.onnx_data", "0", "x", `the length "x"`},
		"a folder":        {"sub", "0", "0", "but the file has"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t, nil)
			put(t, dir, "onnx/model.onnx", external(c.location, c.offset, c.length))
			put(t, dir, "onnx/model.onnx_data", strings.Repeat("x", 20))
			put(t, dir, "onnx/sub/x", "")
			put(t, dir, "secret", strings.Repeat("x", 20))
			m, err := Open(dir, Options{ONNX: true})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				before := m.Recipe.ModelDigest
				put(t, dir, "onnx/model.onnx_data", strings.Repeat("y", 20))
				if m, err = Open(dir, Options{ONNX: true}); err != nil || m.Recipe.ModelDigest == before {
					t.Errorf("external data does not change the digest (%v)", err)
				}
				return
			}
			if f := fault.Of(err); f == nil || f.Class != fault.ModelRefused || !strings.Contains(f.Message, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whatever the bytes are, opening ends with a model or one refusal, and the
// head merges into every graph that is accepted.
func FuzzONNXFile(f *testing.F) {
	f.Add([]byte(external("model.onnx_data", "0", "16")))
	f.Add([]byte(external("../x", "0", "16")))
	f.Add([]byte("\x3a\x00"))
	dir := tiny(f, nil)
	put(f, dir, "model.onnx_data", strings.Repeat("x", 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		put(t, dir, "model.onnx", string(b))
		m, err := Open(dir, Options{ONNX: true})
		if err != nil {
			if !fault.Is(err, fault.ModelRefused) {
				t.Fatal(err)
			}
			return
		}
		g, err := m.Graph(true)
		if err != nil {
			t.Fatal(err)
		}
		var merged onnxpb.ModelProto
		if err := proto.Unmarshal(g.Proto, &merged); err != nil {
			t.Fatal(err)
		}
		out := merged.GetGraph().GetOutput()
		if out[len(out)-1].GetName() != g.Output {
			t.Fatalf("the last output is %q, not %q", out[len(out)-1].GetName(), g.Output)
		}
	})
}

// Whatever the JSON files hold, opening ends with a model or one refusal.
func FuzzConfig(f *testing.F) {
	dir := tiny(f, nil)
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
	names := map[string]bool{"config.json": true, "modules.json": true, "1_Pooling/config.json": true, "tokenizer.json": true,
		promptsFile: true, "sentence_bert_config.json": true, "tokenizer_config.json": true}
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		if !names[name] || len(b) > 1<<16 {
			return
		}
		dir := tiny(t, nil)
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
