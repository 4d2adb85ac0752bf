package models

import (
	"encoding/json"
	"path/filepath"
	"slices"
)

// tokenizer takes the content of tokenizer.json, changed as its class changes it
// (see asItsClass). Where sentence_bert_config.json
// says do_lower_case, a Lowercase step is put before the tokenizer's own
// normalizer, unless that has one already.
func (m *Model) tokenizer(f *folder, sub string) error {
	rel := filepath.Join(sub, "tokenizer.json")
	var t map[string]json.RawMessage
	there, err := f.json(rel, &t)
	if err != nil {
		return err
	}
	if !there {
		return f.refuse(rel, "the file is missing").
			Hinting("take a version of the model with tokenizer.json, or make one by saving its fast tokenizer")
	}
	changed, err := m.asItsClass(f, sub, t)
	if err != nil {
		return err
	}
	if err := m.around(f, sub, t); err != nil {
		return err
	}
	s, sbertRel, err := f.sbert(sub)
	if err != nil {
		return err
	}
	m.TokenizerJSON = f.read[rel]
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(t["model"], &kind) == nil {
		m.fact("tokenizer", rel, "%s", kind.Type)
	}
	if s.DoLowerCase {
		n, lowered, err := lowerCased(t["normalizer"])
		if err != nil {
			return f.refuse(rel, "its normalizer cannot be read: %v", err)
		}
		if lowered {
			m.fact("lower-casing", sbertRel, "before the tokenizer's own normalizer (do_lower_case)")
			t["normalizer"], changed = n, true
		} else {
			m.fact("lower-casing", rel, "by the tokenizer's own normalizer; %s asks for it too", filepath.Base(sbertRel))
		}
	}
	if !changed {
		return nil
	}
	b, err := json.Marshal(t)
	if err != nil {
		return f.refuse(rel, "%v", err)
	}
	m.TokenizerJSON = b
	return nil
}

// unusualTokenizer refuses settings that make other ids, or take another part of a text.
func (f *folder) unusualTokenizer(confRel, rel string, c tokenizerConfig, t map[string]json.RawMessage) error {
	var truncation struct {
		Direction string `json:"direction"`
	}
	var model struct {
		Dropout float64 `json:"dropout"`
	}
	for key, into := range map[string]any{"truncation": &truncation, "model": &model} {
		if given(t[key]) {
			_ = json.Unmarshal(t[key], into) // what is wrong with a part is for the tokenizer to say
		}
	}
	left := "of a long text the end would be kept, which is not supported"
	out := "take it out in a copy of the folder, if the beginning of long texts may be kept"
	switch {
	case c.TruncationSide == "left":
		return f.refuse(confRel, "truncation_side is left: %s", left).Hinting("%s", out)
	case truncation.Direction == "Left" && c.TruncationSide == "":
		return f.refuse(rel, "its truncation has the direction Left: %s", left).Hinting("%s", out)
	case c.SplitSpecial:
		return f.refuse(confRel, "split_special_tokens is true: special tokens inside texts would be split, which is not supported").
			Hinting("take it out in a copy of the folder, if they may stand for themselves")
	case len(c.Versions) > 0:
		return f.refuse(confRel, "fast_tokenizer_files names other tokenizers for other versions, which is not supported").
			Hinting("in a copy of the folder, take it out and make the file that is meant tokenizer.json")
	case model.Dropout != 0:
		return f.refuse(rel, "its model has a dropout: the same text would get other ids each time").
			Hinting("take it out in a copy of the folder")
	}
	return nil
}

// around refuses what a tokenizer puts around a text, or says of it, where the model does
// not have it.
func (m *Model) around(f *folder, sub string, t map[string]json.RawMessage) error {
	rel := filepath.Join(sub, "tokenizer.json")
	var post any
	var template struct {
		Single     []templatePiece `json:"single"`
		Processors []struct {
			Single []templatePiece `json:"single"`
		} `json:"processors"`
	}
	for _, into := range []any{&post, &template} {
		_ = json.Unmarshal(t["post_processor"], into) // what is wrong with it is for the tokenizer to say
	}
	for _, id := range aroundText(post) {
		if id >= float64(m.VocabSize) {
			return f.refuse(rel, "the tokenizer puts a token around each text whose id is %.0f, but the model has only %d tokens", id, m.VocabSize).
				Hinting("tokenizer.json and the weights do not belong together: fetch the model folder again")
		}
	}
	pieces := template.Single
	for _, p := range template.Processors {
		pieces = append(pieces, p.Single...)
	}
	settings, err := f.tokenizerSettings(sub)
	if err != nil {
		return err
	}
	var c tokenizerConfig
	if err := decode(settings, &c); err == nil && slices.Contains(c.Inputs, "token_type_ids") && slices.ContainsFunc(pieces, templatePiece.typed) {
		return f.refuse(rel, "its post_processor gives a text a token type other than 0, which is not supported").
			Hinting("take token_type_ids out of model_input_names in a copy of the folder, if the type may be 0")
	}
	return nil
}

// templatePiece is what a template puts into a text's ids: tokens, or the text itself.
type templatePiece map[string]struct {
	Type int `json:"type_id"`
}

func (p templatePiece) typed() bool {
	for _, one := range p {
		if one.Type != 0 {
			return true
		}
	}
	return false
}

// lowerCased puts a Lowercase step before a normalizer.
func lowerCased(normalizer json.RawMessage) (out json.RawMessage, changed bool, err error) {
	type step struct {
		Type  string            `json:"type"`
		Steps []json.RawMessage `json:"normalizers,omitempty"`
	}
	lower := json.RawMessage(`{"type":"Lowercase"}`)
	if len(normalizer) == 0 || string(normalizer) == "null" {
		return lower, true, nil
	}
	var n step
	if err := json.Unmarshal(normalizer, &n); err != nil {
		return nil, false, err
	}
	if n.Type == "Lowercase" {
		return normalizer, false, nil
	}
	steps := []json.RawMessage{normalizer}
	if n.Type == "Sequence" {
		steps = n.Steps
		for _, raw := range steps {
			var s step
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, false, err
			}
			if s.Type == "Lowercase" {
				return normalizer, false, nil
			}
		}
	}
	out, err = json.Marshal(step{Type: "Sequence", Steps: append([]json.RawMessage{lower}, steps...)})
	return out, true, err
}
