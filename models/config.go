package models

import (
	"encoding/json"
	"path/filepath"

	"localembed/internal/fault"
)

// config is the part of config.json that a graph is built from.
type config struct {
	ModelType    string   `json:"model_type"`
	VocabSize    int      `json:"vocab_size"`
	HiddenSize   int      `json:"hidden_size"`
	Layers       int      `json:"num_hidden_layers"`
	Heads        int      `json:"num_attention_heads"`
	Intermediate int      `json:"intermediate_size"`
	Activation   *string  `json:"hidden_act"`
	Epsilon      *float64 `json:"layer_norm_eps"`
	Positions    int      `json:"max_position_embeddings"`
	Types        *int     `json:"type_vocab_size"`
	PositionKind string   `json:"position_embedding_type"`
	PadID        *int     `json:"pad_token_id"`

	// How DistilBERT spells them.
	Dim         int     `json:"dim"`
	DistilAct   *string `json:"activation"`
	DistilInner int     `json:"hidden_dim"`
	DistilHeads int     `json:"n_heads"`
	DistilLayer int     `json:"n_layers"`

	Embedding   *int `json:"embedding_size"`                 // ELECTRA, ALBERT
	Groups      *int `json:"num_hidden_groups"`              // ALBERT
	InnerGroups *int `json:"inner_group_num"`                // ALBERT
	Buckets     *int `json:"relative_attention_num_buckets"` // MPNet

	Decoder      bool                       `json:"is_decoder"`
	CrossAttn    bool                       `json:"add_cross_attention"`
	Quantization json.RawMessage            `json:"quantization_config"`
	Compression  json.RawMessage            `json:"compression_config"`
	Pruned       map[string]json.RawMessage `json:"pruned_heads"`
	OwnCode      map[string]json.RawMessage `json:"auto_map"`
}

// config reads config.json. Sizes are left as they are; the architecture that
// uses them checks them.
func (f *folder) config(sub string) (config, error) {
	var c config
	rel := filepath.Join(sub, "config.json")
	there, err := f.json(rel, &c)
	if err != nil {
		return c, err
	}
	if !there {
		return c, fault.New(fault.ModelRefused, "the folder has no config.json, so it is no model folder").In(f.path(sub)).
			Hinting("give the folder that holds config.json, tokenizer.json and the weights")
	}
	return c, nil
}

// hidden is the length of a hidden state, 0 if the file does not say.
func (c config) hidden() int {
	if c.HiddenSize > 0 {
		return c.HiddenSize
	}
	return c.Dim
}

// or is the value of an optional field.
func or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// given reports whether an optional object is there and says something.
func given(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}"
}
