package models

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// encoder describes an encoder of BERT's family: embeddings of words, positions
// and token types that are summed and normalized, then layers of attention and
// feed-forward, each of which is added to its input and normalized. Each
// architecture's file says how it differs from BERT.
type encoder struct {
	vocab, width, hidden, heads, inner int // width is that of the embeddings
	positions                          int // rows of the table
	types                              int // rows of the table
	epsilon                            float64
	act, actField, epsilonField        string // the fields are the names in config.json
	padding                            *int   // RoBERTa's positions: only other ids count, from this id + 1; nil: from 0

	prefix                                string // that checkpoints with a head have in front of each name
	words, positionTable, typeTable, norm string // typeTable is "" without token types
	project                               string // linear layer that widens the embeddings, or ""
	distances                             string // table of MPNet's relative positions, or ""
	buckets                               int    // its rows
	count                                 int
	layer                                 func(l int) layer // names of the tensors; layers may share them
	wrong                                 string            // what is impossible in config.json, or ""

	size, keyHeads int              // of a head, and heads of keys; 0: as BERT has them
	bare           bare             // what has no biases
	before         bool             // norms stand in front of attention and feed-forward
	finalNorm      string           // behind the last layer, or ""
	rms            bool             // norms are by the root mean square
	headNorms      bool             // each head of queries and keys is normalized
	view           func(l int) view // of a layer with rotary positions; nil: as BERT has it
}

// view is how the tokens of a layer see each other.
type view struct {
	span  span
	theta float64 // base of the rotary positions
}

// bare says which linear layers and norms have no biases.
type bare struct{ attention, output, mlp, outer, norm bool }

// layer names the linear layers and norms of a layer.
type layer struct {
	query, key, value, output, attentionNorm string
	queryNorm, keyNorm                       string // of each head, or ""
	inner, up, outer, outputNorm             string // up is "" without a gate, else inner is the gate
}

// architectures by model_type in config.json.
var architectures = map[string]func(config) encoder{
	"bert": bert, "roberta": roberta, "xlm-roberta": roberta, "camembert": roberta,
	"distilbert": distilbert, "mpnet": mpnet, "electra": electra, "albert": albert,
	"modernbert": modernBERT, "nomic_bert": nomicBERT, "qwen3": qwen3,
}

// maxLayers bounds what a config.json may ask for; layers that share their
// weights would else be limited by nothing.
const maxLayers = 1024

// built is an encoder with its weights, checked.
type built struct {
	encoder
	kind string
	t    *tensors
}

// encoder checks that the folder holds an encoder that can be built: its
// configuration, and each tensor's presence, type and shape.
func (f *folder) encoder(sub string, c config, files weightFiles) (*built, error) {
	conf := filepath.Join(sub, "config.json")
	make := architectures[c.ModelType]
	switch {
	case make == nil:
		return nil, f.refuse(conf, "the architecture %q is not supported", c.ModelType).
			Hinting("supported are %s; other models need a folder with onnx/model.onnx", names(architectures))
	case given(c.Quantization) || given(c.Compression):
		return nil, f.refuse(conf, "the weights are quantized, which is not supported").
			Hinting("take the fp32 weights of the model")
	case c.PositionKind != "" && c.PositionKind != "absolute" && (c.PositionKind != "sans_pos" || c.ModelType != "modernbert"):
		return nil, f.refuse(conf, "position_embedding_type %q is not supported, only absolute", c.PositionKind)
	case c.Decoder || c.CrossAttn || or(c.Causal, false) && c.ModelType != "qwen3":
		return nil, f.refuse(conf, "a decoder is not supported")
	case c.WeightsFile != "" && !slices.Contains(files.files, filepath.Join(sub, filepath.FromSlash(c.WeightsFile))):
		return nil, f.refuse(conf, "transformers_weights names the weights %.100q, and only %s is read", c.WeightsFile, safetensorsFile).
			Hinting("in a copy of the folder, make that file %s and take the line out", safetensorsFile)
	case len(c.Pruned) > 0:
		return nil, f.refuse(conf, "attention heads are pruned (pruned_heads), which is not supported")
	}
	e := make(c)
	if e.wrong != "" {
		return nil, f.refuse(conf, "%s", e.wrong)
	}
	if encoderActivations[e.act] == nil {
		return nil, f.refuse(conf, "the activation %q (%s) is not supported", e.act, e.actField).
			Hinting("supported are %s", names(encoderActivations))
	}
	for _, n := range []struct {
		name       string
		value, max int
	}{
		{"vocab_size", e.vocab, 1 << 24}, {"hidden_size", e.hidden, 1 << 20}, {"num_hidden_layers", e.count, maxLayers},
		{"num_attention_heads", e.heads, 1 << 20}, {"intermediate_size", e.inner, 1 << 24},
		{"max_position_embeddings", e.positions, 1 << 20}, {"embedding_size", e.width, 1 << 20},
	} {
		if n.value < 1 || n.value > n.max {
			return nil, f.refuse(conf, "%s is %d", n.name, n.value)
		}
	}
	if e.keyHeads == 0 {
		e.keyHeads = e.heads
	}
	switch {
	case e.size == 0 && e.hidden%e.heads != 0:
		return nil, f.refuse(conf, "hidden_size %d is not a multiple of num_attention_heads %d", e.hidden, e.heads)
	case e.size < 0 || e.size > 1<<16:
		return nil, f.refuse(conf, "head_dim is %d", e.size)
	case e.keyHeads < 1 || e.heads%e.keyHeads != 0:
		return nil, f.refuse(conf, "num_attention_heads %d is not a multiple of num_key_value_heads %d", e.heads, e.keyHeads)
	case e.epsilon < 0:
		return nil, f.refuse(conf, "%s is %g", e.epsilonField, e.epsilon)
	case e.padding != nil && (*e.padding < 0 || *e.padding+1 >= e.positions):
		return nil, f.refuse(conf, "with the pad id %d, %d positions leave none for a text", *e.padding, e.positions)
	}
	if e.size == 0 {
		e.size = e.hidden / e.heads
	}
	if e.view != nil && e.size%2 != 0 {
		return nil, f.refuse(conf, "heads of the odd size %d have no rotary positions", e.size)
	}
	t, err := f.tensors(files, e.words, e.prefix)
	if err != nil {
		return nil, err
	}
	b := &built{encoder: e, kind: c.ModelType, t: t}
	return b, b.check()
}

// names of a table, for a hint.
func names[T any](table map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}

// check refuses weights that are not those of the configuration.
func (e *built) check() error {
	w, h, m := int64(e.width), int64(e.hidden), int64(e.inner)
	t := e.t
	t.want(e.words, int64(e.vocab), w)
	if e.positionTable != "" {
		t.want(e.positionTable, int64(e.positions), w)
	}
	if e.typeTable != "" {
		t.want(e.typeTable, int64(e.types), w)
	}
	t.wantNorm(e.norm, w, e.bare.norm)
	t.wantNorm(e.finalNorm, h, e.bare.norm)
	if e.project != "" {
		t.wantLinear(e.project, h, w, false)
	}
	if e.distances != "" {
		t.want(e.distances, int64(e.buckets), int64(e.heads))
	}
	for i := range e.count {
		l := e.layer(i)
		queries, keys := int64(e.heads*e.size), int64(e.keyHeads*e.size)
		t.wantLinear(l.query, queries, h, e.bare.attention)
		t.wantLinear(l.key, keys, h, e.bare.attention)
		t.wantLinear(l.value, keys, h, e.bare.attention)
		t.wantLinear(l.output, h, queries, e.bare.output)
		if e.headNorms {
			t.wantNorm(l.queryNorm, int64(e.size), true)
			t.wantNorm(l.keyNorm, int64(e.size), true)
		}
		t.wantNorm(l.attentionNorm, h, e.bare.norm)
		t.wantLinear(l.inner, m, h, e.bare.mlp)
		if l.up != "" {
			t.wantLinear(l.up, m, h, e.bare.mlp)
		}
		t.wantLinear(l.outer, h, m, e.bare.outer)
		t.wantNorm(l.outputNorm, h, e.bare.norm)
		if t.refused != nil {
			break // the first layer that is not there ends the loop
		}
	}
	if t.refused != nil {
		return t.refused
	}
	if extra := e.layer(e.count).query + ".weight"; t.has(extra) && e.kind != "albert" {
		return t.folder.refuse(t.files.rel, "the weights have more layers than the %d of config.json", e.count).
			Hinting("take the weights that belong to config.json")
	}
	return nil
}

// flops per token of the linear layers. Where only one token of a text counts,
// the last layer computes just keys and values of the others.
func (e *built) flops(one bool) float64 {
	w, h, m := float64(e.width), float64(e.hidden), float64(e.inner)
	q, k := float64(e.heads*e.size), float64(e.keyHeads*e.size)
	wide := 2.0 // matrices of the feed-forward
	if e.layer(0).up != "" {
		wide = 3
	}
	sum := float64(e.count) * 2 * (2*h*q + 2*h*k + wide*h*m)
	if one {
		sum -= 2 * (2*h*q + wide*h*m)
	}
	if e.project != "" {
		sum += 2 * w * h
	}
	return sum
}
