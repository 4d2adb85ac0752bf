package models

import (
	"encoding/json"
	"maps"
	"slices"
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

// sbertKeys are the keys of the file that are honoured, or change no vector.
var sbertKeys = []string{"max_seq_length", "do_lower_case", "transformer_task", "module_output_name", "modality_config", "unpad_inputs", "backend", "cache_dir"}

// sbertArguments are handed on by sentence-transformers when it loads the model, its
// configuration and its tokenizer, in the spellings of several versions: only what
// changes no vector is taken.
var sbertArguments = []string{"model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args", "tokenizer_kwargs", "processor_kwargs"}

// harmless are arguments that change no vector.
var harmless = []string{"trust_remote_code", "attn_implementation", "use_cache", "use_fast", "low_cpu_mem_usage"}

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
	if err != nil || rel == "" {
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
	return f.arguments(rel)
}

// arguments refuses keys that are not known, and arguments that are not harmless.
func (f *folder) arguments(rel string) error {
	var keys map[string]json.RawMessage
	if _, err := f.json(rel, &keys); err != nil {
		return err
	}
	refuse := func(key string) error {
		return f.refuse(rel, "%.100q may change vectors and is not supported", key).
			Hinting("take it out in a copy of the folder, if vectors may be as without it")
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.Contains(sbertKeys, key) || !given(keys[key]) {
			continue
		}
		var arguments map[string]json.RawMessage
		if !slices.Contains(sbertArguments, key) || json.Unmarshal(keys[key], &arguments) != nil {
			return refuse(key)
		}
		for _, name := range slices.Sorted(maps.Keys(arguments)) {
			if !slices.Contains(harmless, name) && given(arguments[name]) {
				return refuse(key + "." + name)
			}
		}
	}
	return nil
}
