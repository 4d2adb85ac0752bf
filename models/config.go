package models

import (
	"encoding/json"
	"path/filepath"

	"localembed/internal/fault"
)

// config is the part of config.json that a graph is built from.
type config struct {
	ModelType    string          `json:"model_type"`
	VocabSize    int             `json:"vocab_size"`
	HiddenSize   int             `json:"hidden_size"`
	Dim          int             `json:"dim"` // how DistilBERT spells hidden_size
	Layers       int             `json:"num_hidden_layers"`
	Heads        int             `json:"num_attention_heads"`
	Intermediate int             `json:"intermediate_size"`
	Activation   string          `json:"hidden_act"`
	Epsilon      *float64        `json:"layer_norm_eps"`
	Positions    int             `json:"max_position_embeddings"`
	PositionKind string          `json:"position_embedding_type"`
	PadID        *int            `json:"pad_token_id"`
	Decoder      bool            `json:"is_decoder"`
	CrossAttn    bool            `json:"add_cross_attention"`
	Quantization json.RawMessage `json:"quantization_config"`
}

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
