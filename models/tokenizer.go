package models

import (
	"encoding/json"
	"path/filepath"
)

// sbert is what sentence-transformers keeps beside config.json.
type sbert struct {
	MaxSeqLength *int   `json:"max_seq_length"`
	DoLowerCase  bool   `json:"do_lower_case"`
	Task         string `json:"transformer_task"`
	Output       string `json:"module_output_name"`
	Modalities   map[string]struct {
		Method string `json:"method"`
		Output string `json:"method_output_name"`
	} `json:"modality_config"`
}

// sbertFiles are the names that the file has, or had once; the first that is there counts.
var sbertFiles = []string{
	"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json", "sentence_camembert_config.json",
	"sentence_albert_config.json", "sentence_xlm-roberta_config.json", "sentence_xlnet_config.json",
}

// sbert reads that file.
func (f *folder) sbert(sub string) (sbert, string, error) {
	var s sbert
	rel := f.find(sub, sbertFiles...)
	if rel == "" {
		return s, "", nil
	}
	_, err := f.json(rel, &s)
	return s, rel, err
}

// unusual refuses what makes sentence-transformers compute something else from
// the same weights.
func (f *folder) unusual(sub string) error {
	if rel := f.find(sub, "adapter_config.json"); rel != "" {
		return f.refuse(rel, "the folder holds an adapter (LoRA), which is not supported").
			Hinting("merge the adapter into its model and save that")
	}
	s, rel, err := f.sbert(sub)
	if err != nil {
		return err
	}
	text, known := s.Modalities["text"]
	switch {
	case s.Task != "" && s.Task != "feature-extraction":
		return f.refuse(rel, "transformer_task %.100q is not supported, only feature-extraction", s.Task)
	case s.Output != "" && s.Output != tokenFeature:
		return f.refuse(rel, "module_output_name %.100q is not supported, only %s", s.Output, tokenFeature)
	case s.Modalities != nil && (!known || text.Method != "forward" || text.Output != "last_hidden_state"):
		return f.refuse(rel, "its modality_config does not make last_hidden_state of a text by forward, which alone is supported")
	}
	return nil
}

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
