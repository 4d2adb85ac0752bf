package models

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// pipeline is what modules.json says happens to a text.
type pipeline struct {
	transformer    string   // its subfolder, "" for the folder itself
	tokens         []step   // between Transformer and Pooling, for each token
	pooling        []string // nil where the folder does not say
	vectors        []step   // behind the Pooling, without the last Normalize
	normalize      bool
	known          bool     // modules.json is there
	leaveOutPrompt bool     // the prompt's tokens do not take part in the pooling
	poolingRel     string   // the file that says how to pool
	denses         []*dense // of tokens and vectors
	names          []string // of the modules, as the facts show them
}

// moduleKeys are the features that a module reads and writes.
type moduleKeys struct {
	Input  *string `json:"module_input_name"`
	Output *string `json:"module_output_name"`
}

const (
	tokenFeature  = "token_embeddings"
	vectorFeature = "sentence_embedding"
)

// pipeline reads modules.json. Its types are matched by their last component,
// because the rest moved between versions of sentence-transformers.
func (f *folder) pipeline() (pipeline, error) {
	var mods []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	there, err := f.json("modules.json", &mods)
	if err != nil {
		return pipeline{}, err
	}
	if !there {
		// A bare folder. It may still say how it pools.
		p := pipeline{}
		if f.find("1_Pooling", "config.json") == "" {
			return p, nil
		}
		return p, f.pooling(&p, "1_Pooling")
	}
	p := pipeline{known: true}
	if len(mods) > maxLayers {
		return p, f.refuse("modules.json", "it has %d modules", len(mods))
	}
	for i, mod := range mods {
		kind := mod.Type[strings.LastIndexByte(mod.Type, '.')+1:]
		sub := filepath.FromSlash(mod.Path)
		if mod.Path != "" && !filepath.IsLocal(sub) {
			return p, f.refuse("modules.json", "the path %q of module %d leads out of the folder", mod.Path, i)
		}
		pooled := p.pooling != nil
		switch {
		case !strings.HasPrefix(mod.Type, "sentence_transformers."):
			err = f.refuse("modules.json", "module %d is %q, which is not of sentence-transformers: it may compute anything", i, mod.Type).
				Hinting("export the whole to ONNX with the output sentence_embedding")
		case kind == "Transformer" && i == 0:
			p.transformer = sub
		case kind == "Pooling" && i > 0 && !pooled:
			err = f.pooling(&p, sub)
		case kind == "Normalize" && i > 0:
			err = f.normalizeModule(&p, sub, i)
		case kind == "Dense" && i > 0:
			err = f.denseModule(&p, sub, i)
		default:
			err = f.refuse("modules.json", "module %d is %q at a place where localembed does not support it", i, mod.Type).
				Hinting("supported are a Transformer, then a Pooling, then any number of Dense and Normalize")
		}
		if err != nil {
			return p, err
		}
		p.names = append(p.names, kind)
	}
	if p.pooling == nil {
		return p, f.refuse("modules.json", "it has no Transformer followed by a Pooling").
			Hinting("supported are a Transformer, then a Pooling, then any number of Dense and Normalize")
	}
	// A Normalize at the end is the recipe's.
	if n := len(p.vectors); n > 0 {
		if _, ok := p.vectors[n-1].(normalize); ok {
			p.vectors, p.normalize = p.vectors[:n-1], true
		}
	}
	return p, nil
}

// place checks what a module reads and writes, and reports whether it works on
// each token.
func (f *folder) place(p *pipeline, rel string, i int, k moduleKeys) (tokens bool, err error) {
	in := or(k.Input, vectorFeature)
	if out := or(k.Output, in); out != in {
		return false, f.refuse(rel, "module %d writes %.100q, which is not what it reads, %.100q", i, out, in)
	}
	want := vectorFeature
	if p.pooling == nil {
		want = tokenFeature
	}
	if in != want {
		return false, f.refuse(rel, "module %d works on %.100q where only %q is supported", i, in, want)
	}
	return want == tokenFeature, nil
}

func (f *folder) normalizeModule(p *pipeline, sub string, i int) error {
	rel := filepath.Join(sub, "config.json")
	var k moduleKeys
	if sub != "" { // old folders have no file for it
		if _, err := f.json(rel, &k); err != nil {
			return err
		}
	}
	tokens, err := f.place(p, rel, i, k)
	if err != nil {
		return err
	}
	// The width is known when the hidden states' is.
	if tokens {
		p.tokens = append(p.tokens, normalize{})
	} else {
		p.vectors = append(p.vectors, normalize{})
	}
	return nil
}

func (f *folder) denseModule(p *pipeline, sub string, i int) error {
	d, k, err := f.dense(sub)
	if err != nil {
		return err
	}
	tokens, err := f.place(p, filepath.Join(sub, "config.json"), i, k)
	if err != nil {
		return err
	}
	p.denses = append(p.denses, d)
	if tokens {
		p.tokens = append(p.tokens, d)
	} else {
		p.vectors = append(p.vectors, d)
	}
	return nil
}

// fit gives each step its width and refuses a Dense module that does not fit in
// front of the others.
func (f *folder) fit(steps []step, width int) ([]step, error) {
	out := make([]step, len(steps))
	for i, s := range steps {
		switch s := s.(type) {
		case normalize:
			out[i] = normalize{width}
		case *dense:
			if s.in != width {
				return nil, f.refuse(s.t.files.rel, "the Dense module takes %d components (in_features), but gets %d", s.in, width).
					Hinting("take the module's folder that belongs to this model, and the pooling that it was trained with")
			}
			out[i] = s
		}
		width = out[i].out()
	}
	return out, nil
}

// pooling reads a pooling module: its old form has one boolean per mode, its
// new one names them.
func (f *folder) pooling(p *pipeline, sub string) error {
	rel := filepath.Join(sub, "config.json")
	var c map[string]json.RawMessage
	there, err := f.json(rel, &c)
	if err != nil {
		return err
	}
	if !there {
		return f.refuse(rel, "the configuration of the pooling is missing")
	}
	var modes []string
	if raw, ok := c["pooling_mode"]; ok {
		var one string
		if json.Unmarshal(raw, &one) == nil {
			modes = []string{one}
		} else if err := json.Unmarshal(raw, &modes); err != nil {
			return f.refuse(rel, "pooling_mode is %.100s, neither a name nor a list of names", raw)
		}
	} else {
		for i, key := range poolBooleans {
			var on bool
			if raw, ok := c[key]; ok && json.Unmarshal(raw, &on) != nil {
				return f.refuse(rel, "%s is %.100s, not true or false", key, raw)
			}
			if on {
				modes = append(modes, poolModes[i])
			}
		}
		if modes == nil {
			modes = []string{poolMean}
		}
	}
	if len(modes) == 0 || len(modes) > maxModes {
		return f.refuse(rel, "it names %d poolings", len(modes))
	}
	if _, err := parsePooling(strings.Join(modes, "+")); err != nil {
		return f.refuse(rel, "the pooling %.100q is not supported", strings.Join(modes, "+")).
			Hinting("supported are %s", strings.Join(poolModes, ", "))
	}
	include := true
	if raw, ok := c["include_prompt"]; ok && json.Unmarshal(raw, &include) != nil {
		return f.refuse(rel, "include_prompt is %.100s, not true or false", raw)
	}
	p.pooling, p.poolingRel, p.leaveOutPrompt = modes, rel, !include
	return nil
}

// maxModes is more than anybody joins.
const maxModes = 16

// poolBooleans are the keys of poolModes in the old form.
var poolBooleans = []string{
	"pooling_mode_cls_token", "pooling_mode_max_tokens", "pooling_mode_mean_tokens",
	"pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken",
}
