package models

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// Poolings by their names in a recipe.
const (
	poolMean = "mean"
	poolCLS  = "cls"
	poolNone = "none" // the graph's output is a vector already
)

// pipeline is what modules.json says happens to a text.
type pipeline struct {
	transformer      string // its subfolder, "" for the folder itself
	pooling          string // "" where the folder does not say
	normalize        bool
	normalizeKnown   bool
	leaveOutPrompt   bool   // the prompt's tokens do not take part in the pooling
	poolingConfigRel string // the file that says so
}

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
	p := pipeline{normalizeKnown: true}
	for i, mod := range mods {
		kind := mod.Type[strings.LastIndexByte(mod.Type, '.')+1:]
		if mod.Path != "" && !filepath.IsLocal(filepath.FromSlash(mod.Path)) {
			return p, f.refuse("modules.json", "the path %q of module %d leads out of the folder", mod.Path, i)
		}
		sub := filepath.FromSlash(mod.Path)
		switch {
		case kind == "Transformer" && i == 0:
			p.transformer = sub
		case kind == "Pooling" && i == 1:
			if err := f.pooling(&p, sub); err != nil {
				return p, err
			}
		case kind == "Normalize" && i == 2 && len(mods) == 3:
			p.normalize = true
		default:
			return p, f.refuse("modules.json", "module %d is %q at a place where localembed does not support it", i, mod.Type).
				Hinting("supported are a Transformer, a Pooling and at most a Normalize, in this order")
		}
	}
	if p.pooling == "" {
		return p, f.refuse("modules.json", "it has no Transformer followed by a Pooling").
			Hinting("supported are a Transformer, a Pooling and at most a Normalize, in this order")
	}
	return p, nil
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
		// The order in which several modes are joined.
		for _, m := range []struct{ key, mode string }{
			{"pooling_mode_cls_token", "cls"}, {"pooling_mode_max_tokens", "max"},
			{"pooling_mode_mean_tokens", "mean"}, {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
			{"pooling_mode_weightedmean_tokens", "weightedmean"}, {"pooling_mode_lasttoken", "lasttoken"},
		} {
			var on bool
			if raw, ok := c[m.key]; ok && json.Unmarshal(raw, &on) != nil {
				return f.refuse(rel, "%s is %.100s, not true or false", m.key, raw)
			}
			if on {
				modes = append(modes, m.mode)
			}
		}
		if modes == nil {
			modes = []string{poolMean}
		}
	}
	if len(modes) != 1 || (modes[0] != poolMean && modes[0] != poolCLS) {
		return f.refuse(rel, "the pooling %q is not supported", strings.Join(modes, "+")).
			Hinting("supported are mean and cls")
	}
	p.pooling, p.poolingConfigRel = modes[0], rel
	include := true
	if raw, ok := c["include_prompt"]; ok && json.Unmarshal(raw, &include) != nil {
		return f.refuse(rel, "include_prompt is %.100s, not true or false", raw)
	}
	p.leaveOutPrompt = !include
	return nil
}
