package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// asItsClass makes of tokenizer.json what the tokenizer's class makes of it in
// transformers 5, and warns where that is something else than the file says. A
// class that makes something else of it is refused, but for an ONNX file of an unknown architecture.
func (m *Model) asItsClass(f *folder, sub string, t map[string]json.RawMessage) (changed bool, err error) {
	rel, confRel := filepath.Join(sub, "tokenizer.json"), filepath.Join(sub, "tokenizer_config.json")
	settings, err := f.tokenizerSettings(sub)
	if err != nil {
		return false, err
	}
	var c tokenizerConfig
	if err := decode(settings, &c); err != nil {
		return false, f.refuse(confRel, "it is not the JSON that such a file holds: %v", err)
	}
	if err := f.unusualTokenizer(confRel, rel, c, t); err != nil {
		return false, err
	}
	var conf struct {
		Type  string `json:"model_type"`
		Class string `json:"tokenizer_class"`
	}
	if _, err := f.json(filepath.Join(sub, "config.json"), &conf); err != nil {
		return false, err
	}
	from := confRel
	if c.Class == "" {
		c.Class, from = conf.Class, filepath.Join(sub, "config.json")
	}
	if c.Class == "" {
		c.Class = classOf[conf.Type]
	}
	c.Class = strings.TrimSuffix(c.Class, "Fast")
	class, known := classes[cmp.Or(aliases[c.Class], c.Class)]
	if !given(t["model"]) {
		return false, nil
	}
	known = known && !strings.HasPrefix(conf.Type, "modernbert")
	var made *tokenizerClass
	if known {
		made = &class
	}
	if changed, err = f.addTokens(sub, settings, t, made); err != nil {
		return false, err
	}
	if changed {
		m.warn("the added tokens of %s are not those that %s and the files beside it name: as in sentence-transformers, they are", filepath.ToSlash(rel), filepath.ToSlash(confRel))
	}
	if !known {
		if strings.HasPrefix(conf.Type, "modernbert") || !slices.Contains(otherClasses, strings.TrimSuffix(c.Class, "Tokenizer")) {
			return changed, nil
		}
		if architectures[conf.Type] != nil {
			return false, f.refuse(from, "the tokenizer is a %.100s, which may take tokenizer.json otherwise than it is written and is not supported", c.Class).
				Hinting(`if tokenizer.json is right as it is, put "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json in a copy of the folder`)
		}
		m.warn("%s makes the tokenizer a %.100s, which may take %s otherwise than it is written: it is taken as it is", filepath.ToSlash(from), c.Class, filepath.ToSlash(rel))
		return changed, nil
	}
	parts, err := class.rebuild(c, t)
	if err != nil {
		return false, f.refuse(rel, "%v, and %s makes it a %s", err, filepath.ToSlash(from), c.Class).
			Hinting(`if the tokenizer is right as it is, put "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json in a copy of the folder`)
	}
	if len(parts) > 0 {
		m.warn("%s makes the tokenizer a %s, which does not take everything from %s: as in sentence-transformers, its %s is that of the class",
			filepath.ToSlash(from), c.Class, filepath.ToSlash(rel), strings.Join(parts, ", "))
	}
	return changed || len(parts) > 0, nil
}

// rebuild sets the parts of a tokenizer.json that are not the class's, and names them.
func (class tokenizerClass) rebuild(c tokenizerConfig, t map[string]json.RawMessage) (parts []string, err error) {
	var file struct {
		Normalizer    any
		PreTokenizer  any
		PostProcessor any
		AddedTokens   []addedToken
	}
	for key, into := range map[string]any{"normalizer": &file.Normalizer, "pre_tokenizer": &file.PreTokenizer,
		"post_processor": &file.PostProcessor, "added_tokens": &file.AddedTokens} {
		if given(t[key]) {
			if err := json.Unmarshal(t[key], into); err != nil {
				return nil, err
			}
		}
	}
	set := func(key string, value any) error {
		parts = append(parts, key)
		t[key], err = json.Marshal(value)
		return err
	}
	var model map[string]json.RawMessage
	if err := json.Unmarshal(t["model"], &model); err != nil {
		return nil, err
	}
	if err := class.setModel(c, model, set); err != nil {
		return nil, err
	}
	if n := class.normalizer(c, charsmap(file.Normalizer)); !reflect.DeepEqual(n, file.Normalizer) {
		if err := set("normalizer", n); err != nil {
			return nil, err
		}
	}
	if p := class.preTokenizer(c); !reflect.DeepEqual(current(p), current(file.PreTokenizer)) {
		if err := set("pre_tokenizer", p); err != nil {
			return nil, err
		}
	}
	if class.ends == nil {
		return parts, nil
	}
	first, last := class.ends(c)
	post, err := wrapping(first, last, file.AddedTokens, t["model"])
	if err != nil {
		return nil, err
	}
	if !slices.Equal(aroundText(post), aroundText(file.PostProcessor)) {
		if err := set("post_processor", post); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// charsmap is the step of a normalizer that is SentencePiece's precompiled map, nil if none.
func charsmap(n any) any {
	o, _ := n.(object)
	steps, _ := o["normalizers"].([]any)
	for _, step := range append([]any{n}, steps...) {
		if s, ok := step.(object); ok && s["type"] == "Precompiled" {
			return s
		}
	}
	return nil
}

// setModel sets the model's settings that are not the class's.
func (class tokenizerClass) setModel(c tokenizerConfig, model map[string]json.RawMessage, set func(string, any) error) error {
	kind := "" // old files leave it out
	if raw := model["type"]; given(raw) {
		if err := json.Unmarshal(raw, &kind); err != nil {
			return err
		}
	}
	if kind != "" && kind != class.model {
		return fmt.Errorf("its model is of type %.40q where %s is needed", kind, class.model)
	}
	changed := false
	for key, want := range class.settings(c) {
		var is any
		if raw := model[key]; given(raw) {
			if err := json.Unmarshal(raw, &is); err != nil {
				return err
			}
		}
		if is == want || isNothing(is) && isNothing(want) || is == nil && key == "max_input_chars_per_word" || is == nil && key == "continuing_subword_prefix" {
			continue
		}
		raw, err := json.Marshal(want)
		if err != nil {
			return err
		}
		model[key], changed = raw, true
	}
	if !changed {
		return nil
	}
	return set("model", model)
}

func isNothing(v any) bool { return v == nil || v == false || v == "" || v == 0.0 }

// current is a pre-tokenizer without what changes no id, and as files of today
// spell it.
func current(p any) any {
	o, ok := p.(object)
	if !ok {
		return p
	}
	switch o["type"] {
	case "ByteLevel":
		regex, there := o["use_regex"]
		return object{"type": "ByteLevel", "add_prefix_space": o["add_prefix_space"] == true, "use_regex": !there || regex == true}
	case "Metaspace":
		scheme, there := o["prepend_scheme"]
		if !there {
			scheme = "always"
			if o["add_prefix_space"] == false {
				scheme = "never"
			}
		}
		split, there := o["split"]
		return object{"type": "Metaspace", "replacement": o["replacement"], "prepend_scheme": scheme, "split": !there || split == true}
	case "Sequence":
		steps, _ := o["pretokenizers"].([]any)
		now := make([]any, len(steps))
		for i, step := range steps {
			now[i] = current(step)
		}
		return object{"type": "Sequence", "pretokenizers": now}
	}
	return o
}

// wrapping is the post-processor that puts one token before and one behind a text.
func wrapping(first, last string, added []addedToken, model json.RawMessage) (object, error) {
	special := object{}
	piece := func(token string) (any, error) {
		id, err := idOf(token, added, model)
		special[token] = object{"id": token, "ids": []any{id}, "tokens": []any{token}}
		return object{"SpecialToken": object{"id": token, "type_id": 0.0}}, err
	}
	text := func(of string) any { return object{"Sequence": object{"id": of, "type_id": 0.0}} }
	before, err := piece(first)
	if err != nil {
		return nil, err
	}
	behind, err := piece(last)
	return object{"type": "TemplateProcessing", "single": []any{before, text("A"), behind},
		"pair": []any{before, text("A"), behind, text("B"), behind}, "special_tokens": special}, err
}

// idOf is the id of a special token.
func idOf(token string, added []addedToken, model json.RawMessage) (float64, error) {
	for _, t := range added {
		if t.Content == token {
			return float64(t.ID), nil
		}
	}
	ids, err := idsOf(model)
	if id, there := ids[token]; there {
		return id, nil
	}
	if err == nil {
		err = fmt.Errorf("it has no token %.40q", token)
	}
	return 0, err
}

// aroundText lists the ids that a post-processor puts before and behind a text,
// which stands as -1; nil if it is of another kind.
func aroundText(post any) []float64 {
	o, _ := post.(object)
	id := func(pair any) float64 {
		if p, ok := pair.([]any); ok && len(p) == 2 {
			if n, ok := p[1].(float64); ok {
				return n
			}
		}
		return -2
	}
	switch o["type"] {
	case "RobertaProcessing", "BertProcessing":
		return []float64{id(o["cls"]), -1, id(o["sep"])}
	case "TemplateProcessing":
		var around []float64
		specials, _ := o["special_tokens"].(object)
		single, _ := o["single"].([]any)
		for _, one := range single {
			piece, _ := one.(object)
			token, ok := piece["SpecialToken"].(object)
			if !ok {
				around = append(around, -1)
				continue
			}
			name, _ := token["id"].(string)
			special, _ := specials[name].(object)
			ids, _ := special["ids"].([]any)
			for _, n := range ids {
				if n, ok := n.(float64); ok {
					around = append(around, n)
				}
			}
		}
		return around
	}
	return nil
}

// decode reads settings into v.
func decode(settings map[string]json.RawMessage, v any) error {
	b, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
