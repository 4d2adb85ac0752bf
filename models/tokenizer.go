package models

import (
	"encoding/json"
	"path/filepath"
)

// tokenizer is the content of tokenizer.json. Where sentence_bert_config.json
// says do_lower_case, a Lowercase step is put before the tokenizer's own
// normalizer, unless that has one already.
func (f *folder) tokenizer(sub string) ([]byte, error) {
	rel := filepath.Join(sub, "tokenizer.json")
	var t map[string]json.RawMessage
	there, err := f.json(rel, &t)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, f.refuse(rel, "the file is missing").
			Hinting("take a version of the model with tokenizer.json, or make one by saving its fast tokenizer")
	}
	// Saving a tokenizer also records limits that do not matter here, so that
	// this file is read for its digest alone.
	var limits struct{}
	if _, err := f.json(filepath.Join(sub, "tokenizer_config.json"), &limits); err != nil {
		return nil, err
	}
	var sbert struct {
		DoLowerCase bool `json:"do_lower_case"`
	}
	if _, err := f.json(filepath.Join(sub, "sentence_bert_config.json"), &sbert); err != nil {
		return nil, err
	}
	if !sbert.DoLowerCase {
		return f.read[rel], nil
	}
	n, changed, err := lowerCased(t["normalizer"])
	if err != nil {
		return nil, f.refuse(rel, "its normalizer cannot be read: %v", err)
	}
	if !changed {
		return f.read[rel], nil
	}
	t["normalizer"] = n
	b, err := json.Marshal(t)
	if err != nil {
		return nil, f.refuse(rel, "%v", err)
	}
	return b, nil
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
