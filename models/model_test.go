package models

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"
	"localembed/models/modeltest"
)

// tiny writes a good folder.
func tiny(t testing.TB) string {
	t.Helper()
	b := modeltest.New()
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

// remove deletes a file of a folder.
func remove(t testing.TB, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
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
	m, err := Open(tiny(t), Options{})
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
	withoutTensor := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			b := modeltest.New()
			b.Fill()
			delete(b.Weights, name)
			if err := os.Rename(filepath.Join(b.Write(t), "model.safetensors"), filepath.Join(dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
		}
	}
	index := func(content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			without("model.safetensors")(t, dir)
			put(t, dir, "model.safetensors.index.json", content)
		}
	}
	dense := func(conf string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			put(t, dir, "modules.json", `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`)
			if conf != "" {
				put(t, dir, "2_Dense/config.json", conf)
			}
		}
	}
	denseWith := func(conf string, in, out int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			dense(conf)(t, dir)
			modeltest.WriteTensors(t, filepath.Join(dir, "2_Dense", "model.safetensors"), map[string]modeltest.Tensor{
				"linear.weight": {Shape: []int{out, in}, Data: make([]float32, in*out)}, "linear.bias": {Shape: []int{out}, Data: make([]float32, out)},
			})
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		o      Options
		file   string // ends the file that is named
		want   string
	}{
		"architecture":     {config(map[string]any{"model_type": "t5"}), Options{}, "config.json", `the architecture "t5" is not supported`},
		"activation":       {config(map[string]any{"hidden_act": "prelu"}), Options{}, "config.json", `the activation "prelu" (hidden_act) is not supported`},
		"positions":        {config(map[string]any{"position_embedding_type": "alibi"}), Options{}, "config.json", `position_embedding_type "alibi" is not supported`},
		"decoder":          {config(map[string]any{"is_decoder": true}), Options{}, "config.json", "a decoder is not supported"},
		"quantized":        {config(map[string]any{"quantization_config": map[string]int{"bits": 4}}), Options{}, "config.json", "the weights are quantized"},
		"no layers":        {config(map[string]any{"num_hidden_layers": nil}), Options{}, "config.json", "num_hidden_layers is 0"},
		"heads":            {config(map[string]any{"num_attention_heads": 5}), Options{}, "config.json", "hidden_size 24 is not a multiple of num_attention_heads 5"},
		"no config":        {without("config.json"), Options{}, "", "the folder has no config.json"},
		"config is a list": {file("config.json", "[]"), Options{}, "config.json", "it is not the JSON that such a file holds"},
		"config is cut":    {file("config.json", `{"model_type": "be`), Options{}, "config.json", "it is not the JSON that such a file holds"},
		"more layers":      {config(map[string]any{"num_hidden_layers": 3}), Options{}, "model.safetensors", `the tensor "encoder.layer.2.attention.self.query.weight" is missing`},
		"many more layers": {config(map[string]any{"num_hidden_layers": 1 << 24}), Options{}, "config.json", "num_hidden_layers is 16777216"},
		"fewer layers":     {config(map[string]any{"num_hidden_layers": 1}), Options{}, "model.safetensors", "more layers than the 1 of config.json"},
		"shape":            {config(map[string]any{"intermediate_size": 41}), Options{}, "model.safetensors", `"encoder.layer.0.intermediate.dense.weight" has the shape [40 24] where config.json asks for [41 24]`},
		"vocabulary":       {config(map[string]any{"vocab_size": 51}), Options{}, "model.safetensors", `"embeddings.word_embeddings.weight" has the shape [50 24] where config.json asks for [51 24]`},
		"tensor missing":   {withoutTensor("encoder.layer.1.output.dense.bias"), Options{}, "model.safetensors", `the tensor "encoder.layer.1.output.dense.bias" is missing`},
		"other model":      {withoutTensor("embeddings.word_embeddings.weight"), Options{}, "model.safetensors", `the tensor "embeddings.word_embeddings.weight" is missing`},
		"weights cut off":  {func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "model.safetensors"), -1) }, Options{}, "model.safetensors", "cut off"},
		"header cut off":   {func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "model.safetensors"), 100) }, Options{}, "model.safetensors", "cut off"},
		"pointer file":     {file("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"), Options{}, "model.safetensors", "more than the 100000000 that the format allows"},
		"pickle only": {func(t *testing.T, dir string) {
			without("model.safetensors")(t, dir)
			put(t, dir, "pytorch_model.bin", "x")
		}, Options{}, "", "the weights are only there as pytorch_model.bin, which localembed does not read because such a file can run code"},
		"empty index":       {index("{}"), Options{}, "model.safetensors.index.json", "it names no file"},
		"shard missing":     {index(`{"weight_map":{"a":"model-1.safetensors"}}`), Options{}, "model.safetensors.index.json", `the weights lie in "model-1.safetensors" too, which is missing`},
		"shard out":         {index(`{"weight_map":{"a":"../x.safetensors"}}`), Options{}, "model.safetensors.index.json", `the file "../x.safetensors" leads out of the folder`},
		"shard is a number": {index(`{"weight_map":{"a":1}}`), Options{}, "model.safetensors.index.json", "it is not the JSON"},
		"no token types":    {withoutTensor("embeddings.token_type_embeddings.weight"), Options{}, "model.safetensors", `the tensor "embeddings.token_type_embeddings.weight" is missing`},
		"pruned":            {config(map[string]any{"pruned_heads": map[string]any{"0": []int{1}}}), Options{}, "config.json", "attention heads are pruned"},
		"epsilon":           {config(map[string]any{"layer_norm_eps": -1}), Options{}, "config.json", "layer_norm_eps is -1"},
		"scaled positions": {config(map[string]any{"model_type": "qwen3", "rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4}}), Options{}, "config.json",
			`rotary positions of the type "yarn" are not supported`},
		"old scaling":   {config(map[string]any{"model_type": "qwen3", "rope_scaling": map[string]any{"type": "linear"}}), Options{}, "config.json", `the type "linear"`},
		"partly rotary": {config(map[string]any{"model_type": "qwen3", "rope_parameters": map[string]any{"partial_rotary_factor": 0.5}}), Options{}, "config.json", "partial_rotary_factor 0.5"},
		"scaled local positions": {config(map[string]any{"model_type": "modernbert", "rope_parameters": map[string]any{"sliding_attention": map[string]any{"rope_type": "llama3"}}}),
			Options{}, "config.json", `the type "llama3"`},
		"no base":               {config(map[string]any{"model_type": "modernbert", "global_rope_theta": 0}), Options{}, "config.json", "rope_theta is 0"},
		"strange layers":        {config(map[string]any{"model_type": "modernbert", "layer_types": []string{"full_attention", "linear_attention"}}), Options{}, "config.json", `layers of the type "linear_attention"`},
		"too few layer types":   {config(map[string]any{"model_type": "modernbert", "layer_types": []string{"full_attention"}}), Options{}, "config.json", "layer_types has 1 entries for 2 layers"},
		"every no layer":        {config(map[string]any{"model_type": "modernbert", "global_attn_every_n_layers": 0}), Options{}, "config.json", "global_attn_every_n_layers is 0"},
		"bidirectional Qwen3":   {config(map[string]any{"model_type": "qwen3", "is_causal": false}), Options{}, "config.json", "is_causal false"},
		"heads that do not fit": {config(map[string]any{"model_type": "qwen3", "num_key_value_heads": 7}), Options{}, "config.json", "is not a multiple of num_key_value_heads 7"},
		"odd heads":             {config(map[string]any{"model_type": "qwen3", "head_dim": 5}), Options{}, "config.json", "heads of the odd size 5"},
		"Qwen3's epsilon":       {config(map[string]any{"model_type": "qwen3", "rms_norm_eps": -1}), Options{}, "config.json", "rms_norm_eps is -1"},
		"ALBERT's groups":       {config(map[string]any{"model_type": "albert", "num_hidden_groups": 0}), Options{}, "config.json", "num_hidden_groups 0 with inner_group_num 1 is not possible"},
		"ALBERT's layers":       {config(map[string]any{"model_type": "albert", "inner_group_num": 1000}), Options{}, "config.json", "num_hidden_layers is 2000"},
		"MPNet's distances":     {config(map[string]any{"model_type": "mpnet", "relative_attention_num_buckets": 8}), Options{}, "config.json", "relative_attention_num_buckets is 8"},
		"RoBERTa's pad":         {config(map[string]any{"model_type": "roberta", "pad_token_id": 19}), Options{}, "config.json", "20 positions leave none"},
		"adapter":               {file("adapter_config.json", "{}"), Options{}, "adapter_config.json", "the folder holds an adapter"},
		"task":                  {file("sentence_bert_config.json", `{"transformer_task":"text-generation"}`), Options{}, "sentence_bert_config.json", `transformer_task "text-generation" is not supported`},
		"pooler output":         {file("sentence_bert_config.json", `{"modality_config":{"text":{"method":"forward","method_output_name":"pooler_output"}}}`), Options{}, "sentence_bert_config.json", "does not make last_hidden_state"},
		"dense missing":         {dense(``), Options{}, "config.json", "the configuration of the Dense module is missing"},
		"dense sizes":           {dense(`{"in_features":24,"out_features":-1}`), Options{}, "config.json", "out_features -1"},
		"dense activation":      {dense(`{"in_features":24,"out_features":8,"activation_function":"my.code.Tanh"}`), Options{}, "config.json", `the activation "my.code.Tanh"`},
		"dense weights":         {dense(`{"in_features":24,"out_features":8}`), Options{}, "2_Dense", "the Dense module holds no weights that can be read"},
		"dense input":           {denseWith(`{"in_features":24,"out_features":8,"module_input_name":"token_embeddings"}`, 24, 8), Options{}, "config.json", `works on "token_embeddings" where only "sentence_embedding"`},
		"dense output":          {denseWith(`{"in_features":24,"out_features":8,"module_output_name":"other"}`, 24, 8), Options{}, "config.json", `writes "other"`},
		"dense shape":           {denseWith(`{"in_features":24,"out_features":9}`, 24, 8), Options{}, "model.safetensors", `"linear.weight" has the shape [8 24] where config.json asks for [9 24]`},
		"dense width":           {denseWith(`{"in_features":25,"out_features":8}`, 25, 8), Options{}, "model.safetensors", "takes 25 components (in_features), but gets 24"},
		"no weights":            {without("model.safetensors"), Options{}, "", "the folder holds no weights"},
		"no tokenizer":          {without("tokenizer.json"), Options{}, "tokenizer.json", "the file is missing"},
		"no pooling config":     {without("1_Pooling"), Options{}, "1_Pooling/config.json", "the configuration of the pooling is missing"},
		"bare":                  {without("1_Pooling", "modules.json"), Options{}, "", "nothing in the folder says how token vectors become one vector"},
		"bare, half said":       {without("1_Pooling", "modules.json"), Options{Pooling: "cls"}, "", "nothing in the folder says"},
		"pooling known":         {without("modules.json"), Options{}, "", "nothing in the folder says"},
		"no pooling named":      {file("1_Pooling/config.json", `{"pooling_mode":[]}`), Options{}, "1_Pooling/config.json", "it names 0 poolings"},
		"pooling list":          {file("1_Pooling/config.json", `{"pooling_mode":["max","median"]}`), Options{}, "1_Pooling/config.json", `the pooling "max+median" is not supported`},
		"pooling is 3":          {file("1_Pooling/config.json", `{"pooling_mode":3}`), Options{}, "1_Pooling/config.json", "neither a name nor a list"},
		"module":                {file("modules.json", `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},{"path":"2","type":"sentence_transformers.models.LSTM"}]`), Options{}, "modules.json", `module 2 is "sentence_transformers.models.LSTM"`},
		"order":                 {file("modules.json", `[{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},{"path":"","type":"sentence_transformers.models.Transformer"}]`), Options{}, "modules.json", `module 0 is "sentence_transformers.models.Pooling"`},
		"no modules":            {file("modules.json", `[]`), Options{}, "modules.json", "it has no Transformer followed by a Pooling"},
		"path out":              {file("modules.json", `[{"path":"../x","type":"sentence_transformers.models.Transformer"}]`), Options{}, "modules.json", `the path "../x" of module 0 leads out of the folder`},
		"absolute path":         {file("modules.json", `[{"path":"/etc","type":"sentence_transformers.models.Transformer"}]`), Options{}, "modules.json", `the path "/etc"`},
		"prompt left out": {func(t *testing.T, dir string) {
			put(t, dir, "1_Pooling/config.json", `{"pooling_mode":"mean","include_prompt":false}`)
			put(t, dir, promptsFile, `{"prompts":{"passage":"p: "}}`)
		}, Options{}, "1_Pooling/config.json", "include_prompt is false"},
		"truncate_dim": {file(promptsFile, `{"truncate_dim":-1}`), Options{}, promptsFile, "truncate_dim is -1"},
		"normalizer": {func(t *testing.T, dir string) {
			put(t, dir, "sentence_bert_config.json", `{"do_lower_case":true}`)
			put(t, dir, "tokenizer.json", `{"normalizer":7}`)
		}, Options{}, "tokenizer.json", "its normalizer cannot be read"},
		"length of documents": {file(sbertFiles[0], `{"document_length":12}`), Options{}, "sentence_bert_config.json", `"document_length" may change vectors`},
		"processing":          {file(sbertFiles[0], `{"processing_kwargs":{"text":{"max_length":12}}}`), Options{}, "sentence_bert_config.json", `"processing_kwargs" may change vectors`},
		"tokenizer arguments": {file(sbertFiles[0], `{"tokenizer_args":{"model_max_length":14}}`), Options{}, "sentence_bert_config.json", `"tokenizer_args.model_max_length" may change vectors`},
		"config arguments":    {file(sbertFiles[0], `{"config_kwargs":{"num_hidden_layers":1}}`), Options{}, "sentence_bert_config.json", `"config_kwargs.num_hidden_layers" may change vectors`},
		"an unknown key":      {file(sbertFiles[0], `{"max_seq_length":12,"new":1}`), Options{}, "sentence_bert_config.json", `"new" may change vectors`},
		"causal":              {config(map[string]any{"is_causal": true}), Options{}, "config.json", "a decoder is not supported"},
		"other weights":       {config(map[string]any{"transformers_weights": "other.safetensors"}), Options{}, "config.json", `transformers_weights names the weights "other.safetensors"`},
		"strange module":      {file("modules.json", `[{"path":"","type":"my_code.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}]`), Options{}, "modules.json", `module 0 is "my_code.Transformer", which is not of sentence-transformers`},
		"left truncation":     {file("tokenizer.json", `{"truncation":{"direction":"Left"}}`), Options{}, "tokenizer.json", "of a long text the end would be kept"},
		"left side":           {file("tokenizer_config.json", `{"truncation_side":"left"}`), Options{}, "tokenizer_config.json", "of a long text the end would be kept"},
		"split specials":      {file("tokenizer_config.json", `{"split_special_tokens":true}`), Options{}, "tokenizer_config.json", "split_special_tokens is true"},
		"several tokenizers":  {file("tokenizer_config.json", `{"fast_tokenizer_files":["tokenizer.4.0.json"]}`), Options{}, "tokenizer_config.json", "fast_tokenizer_files"},
		"dropout":             {file("tokenizer.json", `{"model":{"type":"BPE","dropout":0.1}}`), Options{}, "tokenizer.json", "has a dropout"},
		"a class of its own": {func(t *testing.T, dir string) {
			put(t, dir, "tokenizer.json", `{"model":{"type":"Unigram"}}`)
			put(t, dir, "tokenizer_config.json", `{"tokenizer_class":"T5TokenizerFast"}`)
		}, Options{}, "tokenizer_config.json", "the tokenizer is a T5Tokenizer"},
		"token types": {func(t *testing.T, dir string) {
			put(t, dir, "tokenizer.json", `{"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":1}}]}}`)
			put(t, dir, "tokenizer_config.json", `{"model_input_names":["input_ids","token_type_ids"]}`)
		}, Options{}, "tokenizer.json", "a token type other than 0"},
		"a folder for a file": {func(t *testing.T, dir string) {
			without("modules.json")(t, dir)
			put(t, dir, "modules.json/x", "")
		}, Options{}, "modules.json", "it is a folder where a file should be"},
		"no ONNX file": {nil, Options{ONNX: true}, "", "the folder has no onnx/model.onnx or model.onnx"},
		"ONNX is text": {file("model.onnx", "version https://git-lfs"), Options{ONNX: true}, "model.onnx", "it is not an ONNX model"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
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
		"pooling":      {Options{Pooling: "max+"}, `pooling "max+" is not supported`},
		"precision":    {Options{Precision: "int4"}, `precision "int4" is not supported`},
		"dims":         {Options{Dims: 25}, "--dims 25 does not fit: the model's vectors have 24 components"},
		"negative":     {Options{Dims: -1}, "--dims -1"},
		"max tokens":   {Options{MaxTokens: 21}, "--max-tokens 21 does not fit the model, which takes 3 to 20 tokens"},
		"two tokens":   {Options{MaxTokens: 2}, "--max-tokens 2 "},
		"prompt name":  {Options{PromptName: "query"}, `the folder has no prompt named "query"`},
		"both prompts": {Options{PromptName: "query", Prompt: &p}, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tiny(t), c.o)
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
	dir := tiny(t)
	first := digest(dir)
	if again := digest(tiny(t)); again != first {
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
		{"special_tokens_map.json", `{}`},
		{"tokenizer_config.json", `{"tokenizer_class":"PreTrainedTokenizerFast"}`},
		{"tokenizer.json", `{"model":{"vocab":{}}}`},
		{"added_tokens.json", `{"x":1}`},
	} {
		put(t, dir, change.name, change.content)
		d := digest(dir)
		if before, ok := seen[d]; ok {
			t.Errorf("changing %s gives the digest of changing %s", change.name, before)
		}
		seen[d] = change.name
	}
	next := func(what string) {
		t.Helper()
		if before, ok := seen[digest(dir)]; ok {
			t.Errorf("%s gives the digest of changing %s", what, before)
		}
		seen[digest(dir)] = what
	}
	path := filepath.Join(dir, "model.safetensors")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	put(t, dir, "model.safetensors", string(b))
	next("one bit of the weights")

	// An ONNX file decides nothing beside weights that a graph is built from.
	look := modeltest.New()
	look.Fill()
	graph, data := modeltest.Outside(t, look.LookUp(t, 17, "fp32"), "model.onnx_data")
	before := digest(dir)
	put(t, dir, "onnx/model.onnx", string(graph))
	put(t, dir, "onnx/model.onnx_data", string(data))
	if digest(dir) != before {
		t.Error("an ONNX file that is not used changed the digest")
	}
	remove(t, dir, "model.safetensors")
	next("the ONNX file")
	data[0] ^= 1
	put(t, dir, "onnx/model.onnx_data", string(data))
	next("one bit of the external data")
	graph = append(graph, 0x12, 0) // an empty name of a producer
	put(t, dir, "onnx/model.onnx", string(graph))
	next("the bytes of the ONNX file")
	before = digest(dir)
	put(t, dir, "onnx/model_O4.onnx", string(graph))
	put(t, dir, "onnx/other_data", "x")
	if digest(dir) != before {
		t.Error("a file beside the ONNX file changed the digest")
	}
}

// Names of weights have the architecture's own prefix or none: with another one, or with
// both, transformers computes with other weights or with random ones.
func TestPrefixesOfWeights(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "bert.": "", "model.encoder.": `the architecture's own is "bert."`, "roberta.": `the architecture's own is "bert."`} {
		b := modeltest.New()
		b.Prefix = prefix
		b.Fill()
		dir := b.Write(t)
		_, err := Open(dir, Options{})
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", prefix, err)
			}
		} else if !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", prefix, err, want)
		}
		if prefix == "bert." {
			b.Weights["embeddings.word_embeddings.weight"] = b.Weights["bert.embeddings.word_embeddings.weight"]
			if _, err := Open(b.Write(t), Options{}); !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), "it holds several models") {
				t.Errorf("with both: %v", err)
			}
		}
	}
}

// What changes no vector is no reason to refuse a folder.
func TestHarmlessSettings(t *testing.T) {
	dir := tiny(t)
	put(t, dir, "sentence_bert_config.json", `{"model_args":{"trust_remote_code":true,"attn_implementation":"sdpa"},"tokenizer_args":{},"query_length":null,"unpad_inputs":false}`)
	put(t, dir, "tokenizer_config.json", `{"truncation_side":"right","max_len":7,"split_special_tokens":false,"model_input_names":["input_ids"]}`)
	put(t, dir, "tokenizer.json", `{"truncation":{"direction":"Left"},"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":1}}]}}`)
	m, err := Open(dir, Options{})
	if err != nil || m.Recipe.MaxTokens != 7 {
		t.Errorf("got %+v, %v", m, err)
	}
}
