// Package models turns a model folder, as sentence-transformers or a hub lays
// it out, into a recipe and an ONNX graph. It reads what is there and builds
// what is not: it never runs anything and knows nothing of ONNX Runtime.
//
// # What it guarantees
//
//   - The graph computes what sentence-transformers computes for documents with
//     the same folder; whatever in the folder cannot be honoured is refused in
//     one sentence that names it, never ignored and never guessed.
//   - The model digest in the recipe covers the content of every file that
//     decides a vector, and no name of a folder.
//   - Pooling, normalization and the cut to fewer dimensions are part of the
//     graph, in fp32: it maps token ids to [items, dim].
//   - The vector of a text does not depend on the other texts of its batch.
//
// # Files it reads
//
//	modules.json                       which modules, in which order
//	config.json                        the architecture and its sizes
//	model.safetensors                  weights; mapped in place, never copied
//	model.safetensors.index.json       weights in several files
//	onnx/model.onnx or model.onnx      a graph that is there already
//	tokenizer.json                     handed on as the tokenizer's class makes it
//	tokenizer_config.json, sentence_bert_config.json    limits, lower-casing, the tokenizer's class
//	1_Pooling/config.json              pooling (the folder that modules.json names)
//	2_Dense/config.json                a Dense module, and model.safetensors beside it
//	config_sentence_transformers.json  prompts, truncate_dim
//
// # Where what lives
//
// folder.go reads the folder's JSON, modules.go the pipeline, config.go,
// limits.go, prompts.go and tokenizer.go what their names say, digest.go the
// identity, facts.go keeps where each value came from. weights.go finds the
// tensors of a built graph; encoder.go says what an architecture is, and each has
// a file (bert.go, roberta.go, …) that says how it differs from BERT; layers.go
// and attention.go build it with blocks.go, rotary.go, span.go, builder.go and nodes.go. onnxfile.go and
// external.go read a graph that is there. head.go ends both: pooling.go, dense.go, the cut.
package models

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// Options is what the caller wants otherwise than the folder says. The zero
// value takes everything from the folder.
type Options struct {
	Pooling    string  // one of cls, max, mean, mean_sqrt_len_tokens, weightedmean and lasttoken, or several joined by +; "" as the folder says
	Normalize  *bool   // nil as the folder says
	Prompt     *string // put before each text; nil as the folder says, "" none
	Query      bool    // texts are queries: the folder's prompt for those is taken
	PromptName string  // a prompt of the folder by its name; "" as the folder says
	MaxTokens  int     // specials and prompt included; 0 as the folder says
	Dims       int     // first components of a vector to keep; 0 as the folder says
	Precision  string  // fp32, which is the default, or fp16: weights and activations, while the head stays in fp32
	ONNX       bool    // take the folder's ONNX file even if a graph could be built

	// Tokenize gives the ids of a text with special tokens and without a limit, by
	// the content of tokenizer.json. It is called where the pooling leaves out the
	// prompt (include_prompt is false), to count its tokens; where it is nil, such
	// a folder with a prompt is refused.
	Tokenize func(tokenizerJSON []byte, text string) ([]uint32, error)
}

// Model is a model folder that was understood.
type Model struct {
	Dir           string // the folder
	Recipe        key.Recipe
	TokenizerJSON []byte  // the content of tokenizer.json, do_lower_case applied
	VocabSize     int     // token ids are below it
	WeightBytes   int64   // what the weights take in memory
	FLOPsPerToken float64 // of the linear layers, two for a multiplication and its addition
	Facts         []Fact  // what is known, and where from
	Warnings      []string

	// Fused makes built graphs without a mask attend by ONNX Runtime's own
	// MultiHeadAttention, which has faster kernels on CUDA, rather than by plain
	// operators, which are as fast on a CPU. May be changed before Graph is called.
	Fused bool

	graph  source
	head   head
	origin origin
}

// source makes the graph up to the hidden states, or up to a vector where the
// graph that is there pools itself.
type source interface {
	// graph returns a whole ModelProto with the head's nodes at its end.
	graph(h head, f form) (Graph, error)
}

// Open reads a model folder, or the one that an ONNX file belongs to, whose path dir
// then is, to take that file. An error is a *fault.Error of class model_refused
// where the folder cannot be honoured, no_such_file or usage.
func Open(dir string, o Options) (*Model, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	if o.Precision == "" {
		o.Precision = "fp32"
	}
	if o.Precision != "fp32" && o.Precision != "fp16" {
		return nil, fault.New(fault.Usage, "precision %q is not supported", o.Precision).
			Hinting("use fp32 or fp16")
	}
	p, err := f.pipeline()
	if err != nil {
		return nil, err
	}
	cfg, err := f.config(p.transformer)
	if err != nil {
		return nil, err
	}
	if err := f.unusual(p.transformer); err != nil {
		return nil, err
	}
	m := &Model{Dir: f.dir}
	w, err := m.choose(f, p, cfg, o)
	if err != nil {
		return nil, err
	}
	if err := m.settle(f, p, o, w); err != nil {
		return nil, err
	}
	if err := m.tokenizer(f, p.transformer); err != nil {
		return nil, err
	}
	if err := m.prompt(f, o, p); err != nil {
		return nil, err
	}
	m.FLOPsPerToken = w.flops(m.head.one() != all)
	m.architectureFacts(p, cfg, w)
	if err := m.maxTokens(f, p.transformer, cfg, o.MaxTokens); err != nil {
		return nil, err
	}
	files := w.files
	for _, d := range p.denses {
		files = append(files, d.t.files.files...)
	}
	if m.Recipe.ModelDigest, err = f.digest(files); err != nil {
		return nil, err
	}
	m.origin = f.origin(files)
	m.Recipe.Precision = o.Precision
	return m, nil
}

// weights is what was chosen to compute with.
type weights struct {
	source source
	files  []string // that hold them, relative to the folder
	kind   string   // the types of numbers, as the facts show them
	disk   int64    // bytes on disk
	dim    int      // of a hidden state, or of the vector where pooled
	pooled bool     // the graph's output is a vector already
	flops  func(one bool) float64
}

// choose takes the weights: a built graph wins over an ONNX file, unless the
// file is asked for or the architecture cannot be built.
func (m *Model) choose(f *folder, p pipeline, cfg config, o Options) (weights, error) {
	st, err := f.safetensors(p.transformer)
	if err != nil {
		return weights{}, err
	}
	on := cmp.Or(f.asked, f.find(p.transformer, onnxFiles...))
	asked := o.ONNX || f.asked != ""
	if st.files == nil && on == "" {
		return weights{}, f.noWeights(p.transformer, "the folder")
	}
	switch {
	case o.ONNX && on == "":
		return weights{}, fault.New(fault.ModelRefused, "the folder has no onnx/model.onnx or model.onnx").In(f.dir).
			Hinting("leave --onnx out to build the graph from %s", st.rel)
	case st.files != nil && !asked:
		b, err := f.encoder(p.transformer, cfg, st)
		if err == nil {
			m.VocabSize, m.WeightBytes = b.vocab, b.t.memory
			if o.Precision == "fp16" {
				m.WeightBytes /= 2
			}
			return weights{source: b, files: st.files, kind: names(b.t.kinds), disk: b.t.disk, dim: b.hidden, flops: b.flops}, nil
		}
		if on == "" || architectures[cfg.ModelType] != nil {
			return weights{}, err
		}
		m.warn("%s is used: localembed cannot build a graph for the architecture %q of %s", on, cfg.ModelType, st.rel)
	}
	if o.Precision != "fp32" {
		return weights{}, fault.New(fault.ModelRefused, "--precision %s is for graphs that are built from model.safetensors; %s keeps the numbers that it has", o.Precision, on).In(f.dir).
			Hinting("leave --precision out")
	}
	// A vector that the graph makes itself says nothing of the modules behind the pooling.
	hidden := o.Pooling != "" || len(p.tokens)+len(p.vectors) > 0 || p.leaveOutPrompt
	x, err := f.onnxFile(on, hidden)
	if err != nil {
		return weights{}, err
	}
	if cfg.VocabSize <= 0 {
		return weights{}, fault.New(fault.ModelRefused, "vocab_size is missing").In(f.path(filepath.Join(p.transformer, "config.json"))).
			Hinting("take the config.json that belongs to the model")
	}
	if x.dim == 0 {
		x.dim = cfg.hidden()
	}
	if h := cfg.hidden(); !x.pooled && h > 0 && x.dim != h {
		return weights{}, f.refuse(on, "the output %q has %d columns, and the hidden size in config.json is %d", x.output, x.dim, h).
			Hinting("take the config.json that belongs to the file")
	}
	if x.guessed {
		m.warn("%s has one output, %q, which is taken although its name does not say what it is", on, x.output)
	}
	switch {
	case x.dynamic:
		m.warn("%s is %s as it runs: a vector depends on the other texts of its batch and is not reproducible bit by bit", on, x.quantized)
	case x.quantized != "":
		m.warn("%s is %s: its vectors are near those of the model that it was made from, not the same", on, x.quantized)
	}
	m.VocabSize, m.WeightBytes = cfg.VocabSize, x.bytes
	kind := "ONNX"
	if x.quantized != "" {
		kind += ", " + x.quantized
	}
	return weights{source: x, files: x.files, kind: kind, disk: x.bytes, dim: x.dim, pooled: x.pooled, flops: func(bool) float64 { return x.flops }}, nil
}

// settle decides pooling, modules, normalization and dimensions.
func (m *Model) settle(f *folder, p pipeline, o Options, w weights) error {
	h := head{pooling: p.pooling, normalize: p.normalize, width: w.dim}
	from, normalizeFrom := p.poolingRel, "modules.json"
	if w.pooled {
		h.pooling, from = []string{poolNone}, w.files[0]
	}
	if o.Pooling != "" {
		modes, err := parsePooling(o.Pooling)
		if err != nil {
			return err
		}
		if len(modes) > maxModes {
			return fault.New(fault.Usage, "--pooling joins %d poolings", len(modes)).Hinting("give at most %d", maxModes)
		}
		if p.pooling != nil && !slices.Equal(modes, p.pooling) {
			m.warn("--pooling %s overrides %s, which %s says", o.Pooling, strings.Join(p.pooling, "+"), filepath.ToSlash(p.poolingRel))
		}
		h.pooling, from = modes, "--pooling"
	}
	if o.Normalize != nil {
		if p.known && *o.Normalize != p.normalize {
			m.warn("--normalize=%t overrides %t, which modules.json says", *o.Normalize, p.normalize)
		}
		h.normalize, normalizeFrom = *o.Normalize, "--normalize"
	}
	if !w.pooled && (h.pooling == nil || !p.known && o.Normalize == nil) {
		return fault.New(fault.ModelRefused, "nothing in the folder says how token vectors become one vector: it has no modules.json").In(f.dir).
			Hinting("look into the model's description and give --pooling (mean or cls, say) and --normalize (true or false)")
	}
	if w.dim <= 0 {
		return fault.New(fault.ModelRefused, "nothing says how long a vector is: neither the graph's output nor hidden_size in config.json").In(f.dir).
			Hinting("take the config.json that belongs to the model")
	}
	var err error
	if h.tokens, err = f.fit(p.tokens, w.dim); err != nil {
		return err
	}
	if h.vectors, err = f.fit(p.vectors, h.pooled()); err != nil {
		return err
	}
	if p.names != nil {
		m.fact("modules", "modules.json", "%s", strings.Join(p.names, ", "))
	}
	for _, d := range p.denses {
		m.fact("dense", d.t.files.rel, "%d → %d, bias %t, %s", d.in, d.size, d.bias, d.actName)
	}
	m.Recipe.Pooling, m.Recipe.Normalize = strings.Join(h.pooling, "+"), h.normalize
	m.fact("pooling", from, "%s", m.Recipe.Pooling)
	m.fact("normalize", normalizeFrom, "%t", h.normalize)
	m.head, m.graph = h, w.source
	return m.dims(f, o.Dims)
}

// dims decides how many components of a vector are kept.
func (m *Model) dims(f *folder, wanted int) error {
	whole := m.head.whole()
	dims, from := whole, "the last module"
	cut, err := f.truncateDim()
	if err != nil {
		return err
	}
	if cut > 0 && cut < whole {
		dims, from = cut, promptsFile
	}
	if wanted < 0 || wanted > whole {
		return fault.New(fault.Usage, "--dims %d does not fit: the model's vectors have %d components", wanted, whole).
			Hinting("use 1 to %d", whole)
	}
	if wanted > 0 {
		dims, from = wanted, "--dims"
	}
	m.head.dims, m.Recipe.Dims = dims, dims
	m.fact("dimensions", from, "%d", dims)
	return nil
}
