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
//	onnx/model.onnx or model.onnx      a graph that is there already
//	tokenizer.json                     handed on as it is (but see do_lower_case)
//	tokenizer_config.json, sentence_bert_config.json    limits, do_lower_case
//	1_Pooling/config.json              pooling (the folder that modules.json names)
//	config_sentence_transformers.json  prompts, truncate_dim
//
// # Where what lives
//
// folder.go reads the folder's JSON, modules.go the pipeline, config.go,
// limits.go, prompts.go and tokenizer.go what their names say, digest.go the
// identity. weights.go finds the tensors of a built graph, bert.go builds it with
// the nodes of nodes.go; onnxfile.go and external.go read a graph that is there;
// head.go pools and normalizes both.
package models

import (
	"path/filepath"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// Options is what the caller wants otherwise than the folder says. The zero
// value takes everything from the folder.
type Options struct {
	Pooling    string  // mean or cls; "" as the folder says
	Normalize  *bool   // nil as the folder says
	Prompt     *string // put before each text; nil as the folder says, "" none
	Query      bool    // texts are queries: the folder's prompt for those is taken
	PromptName string  // a prompt of the folder by its name; "" as the folder says
	MaxTokens  int     // specials and prompt included; 0 as the folder says
	Dims       int     // first components of a vector to keep; 0 as the folder says
	Precision  string  // fp32, which is the default
	ONNX       bool    // take the folder's ONNX file even if a graph could be built
}

// Model is a model folder that was understood.
type Model struct {
	Dir           string
	Recipe        key.Recipe
	TokenizerJSON []byte  // the content of tokenizer.json, do_lower_case applied
	VocabSize     int     // token ids are below it
	WeightBytes   int64   // size of the weights on disk
	FLOPsPerToken float64 // of the linear layers, two for a multiplication and its addition
	Warnings      []string

	graph source
	head  head
}

// source makes the graph up to the hidden states, or up to a vector where the
// graph that is there pools itself.
type source interface {
	// graph returns a whole ModelProto with the head's nodes at its end.
	graph(h head, masked bool) (Graph, error)
}

// Open reads a model folder. An error is a *fault.Error of class model_refused
// where the folder cannot be honoured, no_such_file or usage.
func Open(dir string, o Options) (*Model, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	if o.Precision != "" && o.Precision != "fp32" {
		return nil, fault.New(fault.Usage, "precision %q is not supported", o.Precision).
			Hinting("use fp32")
	}
	p, err := f.pipeline()
	if err != nil {
		return nil, err
	}
	cfg, err := f.config(p.transformer)
	if err != nil {
		return nil, err
	}
	m := &Model{Dir: dir}
	w, err := m.choose(f, p, cfg, o)
	if err != nil {
		return nil, err
	}
	if err := m.settle(f, p, o, w); err != nil {
		return nil, err
	}
	if m.TokenizerJSON, err = f.tokenizer(p.transformer); err != nil {
		return nil, err
	}
	if err := m.prompt(f, o, p); err != nil {
		return nil, err
	}
	if m.Recipe.MaxTokens, err = f.maxTokens(p.transformer, cfg, o.MaxTokens); err != nil {
		return nil, err
	}
	if m.Recipe.ModelDigest, err = f.digest(w.files); err != nil {
		return nil, err
	}
	m.Recipe.Precision = "fp32"
	return m, nil
}

// weights is what was chosen to compute with.
type weights struct {
	source source
	files  []string // that hold them, relative to the folder
	dim    int      // of a hidden state, or of the vector where pooled
	pooled bool     // the graph's output is a vector already
}

// choose takes the weights: a built graph wins over an ONNX file, unless the
// file is asked for or the architecture cannot be built.
func (m *Model) choose(f *folder, p pipeline, cfg config, o Options) (weights, error) {
	st := f.find(p.transformer, "model.safetensors")
	on := f.find(p.transformer, "onnx/model.onnx", "model.onnx")
	if st == "" && on == "" {
		return weights{}, f.noWeights(p.transformer)
	}
	switch {
	case o.ONNX && on == "":
		return weights{}, fault.New(fault.ModelRefused, "the folder has no onnx/model.onnx or model.onnx").In(f.dir).
			Hinting("leave --onnx out to build the graph from model.safetensors")
	case st != "" && !o.ONNX:
		b, err := f.bert(st, p.transformer, cfg)
		if err == nil {
			m.VocabSize, m.WeightBytes, m.FLOPsPerToken = b.cfg.VocabSize, b.bytes, b.flops()
			return weights{source: b, files: []string{st}, dim: b.cfg.HiddenSize}, nil
		}
		if on == "" || cfg.ModelType == "bert" {
			return weights{}, err
		}
		m.warn("%s is used: localembed cannot build a graph for the architecture %q of %s", on, cfg.ModelType, st)
	}
	x, err := f.onnxFile(on, o.Pooling != "")
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
	if x.dynamicInt8 {
		m.warn("%s quantizes its inputs as it runs: a vector depends on the other texts of its batch and is not reproducible bit by bit", on)
	}
	m.VocabSize, m.WeightBytes, m.FLOPsPerToken = cfg.VocabSize, x.bytes, x.flops
	return weights{source: x, files: x.files, dim: x.dim, pooled: x.pooled}, nil
}

// settle decides pooling, normalization and dimensions.
func (m *Model) settle(f *folder, p pipeline, o Options, w weights) error {
	h := head{pooling: p.pooling, normalize: p.normalize, width: w.dim}
	if w.pooled {
		h.pooling = poolNone
	}
	if o.Pooling != "" {
		if o.Pooling != poolMean && o.Pooling != poolCLS {
			return fault.New(fault.Usage, "pooling %q is not supported", o.Pooling).Hinting("use mean or cls")
		}
		h.pooling = o.Pooling
	}
	if o.Normalize != nil {
		h.normalize = *o.Normalize
	}
	if !w.pooled && (h.pooling == "" || !p.normalizeKnown && o.Normalize == nil) {
		return fault.New(fault.ModelRefused, "nothing in the folder says how token vectors become one vector: it has no modules.json").In(f.dir).
			Hinting("look into the model's description and give --pooling (mean or cls) and --normalize (true or false)")
	}
	if w.dim <= 0 {
		return fault.New(fault.ModelRefused, "nothing says how long a vector is: neither the graph's output nor hidden_size in config.json").In(f.dir).
			Hinting("take the config.json that belongs to the model")
	}
	h.dims = w.dim
	cut, err := f.truncateDim()
	if err != nil {
		return err
	}
	if cut > 0 && cut < h.dims {
		h.dims = cut
	}
	if o.Dims < 0 || o.Dims > w.dim {
		return fault.New(fault.Usage, "--dims %d does not fit: the model's vectors have %d components", o.Dims, w.dim).
			Hinting("use 1 to %d", w.dim)
	}
	if o.Dims > 0 {
		h.dims = o.Dims
	}
	m.head, m.graph = h, w.source
	m.Recipe.Pooling, m.Recipe.Normalize, m.Recipe.Dims = h.pooling, h.normalize, h.dims
	return nil
}
