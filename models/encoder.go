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
	act, actField                      string // actField is the name in config.json
	padding                            *int   // RoBERTa's positions: only other ids count, from this id + 1; nil: from 0

	prefix                                string // that checkpoints with a head have in front of each name
	words, positionTable, typeTable, norm string // typeTable is "" without token types
	project                               string // linear layer that widens the embeddings, or ""
	distances                             string // table of MPNet's relative positions, or ""
	buckets                               int    // its rows
	count                                 int
	layer                                 func(l int) layer // names of the tensors; layers may share them
	wrong                                 string            // what is impossible in config.json, or ""
}

// layer names the linear layers and norms of a layer.
type layer struct {
	query, key, value, output, attentionNorm string
	inner, outer, outputNorm                 string
}

// architectures by model_type in config.json.
var architectures = map[string]func(config) encoder{
	"bert": bert, "roberta": roberta, "xlm-roberta": roberta, "camembert": roberta,
	"distilbert": distilbert, "mpnet": mpnet, "electra": electra, "albert": albert,
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
	case c.PositionKind != "" && c.PositionKind != "absolute":
		return nil, f.refuse(conf, "position_embedding_type %q is not supported, only absolute", c.PositionKind)
	case c.Decoder || c.CrossAttn:
		return nil, f.refuse(conf, "a decoder is not supported")
	case len(c.Pruned) > 0:
		return nil, f.refuse(conf, "attention heads are pruned (pruned_heads), which is not supported")
	}
	e := make(c)
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
	switch {
	case e.hidden%e.heads != 0:
		return nil, f.refuse(conf, "hidden_size %d is not a multiple of num_attention_heads %d", e.hidden, e.heads)
	case e.epsilon < 0:
		return nil, f.refuse(conf, "layer_norm_eps is %g", e.epsilon)
	case e.padding != nil && (*e.padding < 0 || *e.padding+1 >= e.positions):
		return nil, f.refuse(conf, "with the pad id %d, %d positions leave none for a text", *e.padding, e.positions)
	case e.wrong != "":
		return nil, f.refuse(conf, "%s", e.wrong)
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
	t.want(e.positionTable, int64(e.positions), w)
	if e.typeTable != "" {
		t.want(e.typeTable, int64(e.types), w)
	}
	t.wantNorm(e.norm, w)
	if e.project != "" {
		t.wantLinear(e.project, h, w)
	}
	if e.distances != "" {
		t.want(e.distances, int64(e.buckets), int64(e.heads))
	}
	for i := range e.count {
		l := e.layer(i)
		for _, name := range []string{l.query, l.key, l.value, l.output} {
			t.wantLinear(name, h, h)
		}
		t.wantNorm(l.attentionNorm, h)
		t.wantLinear(l.inner, m, h)
		t.wantLinear(l.outer, h, m)
		t.wantNorm(l.outputNorm, h)
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

// flops per token of the linear layers. Where only a text's first token counts,
// the last layer computes just keys and values of the others.
func (e *built) flops(first bool) float64 {
	w, h, m := float64(e.width), float64(e.hidden), float64(e.inner)
	sum := float64(e.count) * 2 * (4*h*h + 2*h*m)
	if first {
		sum -= 2 * (2*h*h + 2*h*m)
	}
	if e.project != "" {
		sum += 2 * w * h
	}
	return sum
}
