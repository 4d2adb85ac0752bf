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

	// Rotary positions and what comes with them.
	Rope             json.RawMessage `json:"rope_parameters"`
	RopeScaling      json.RawMessage `json:"rope_scaling"`
	LayerTypes       []string        `json:"layer_types"`
	AttentionBias    *bool           `json:"attention_bias"`
	NormEpsilon      *float64        `json:"norm_eps"` // ModernBERT from here
	HiddenActivation *string         `json:"hidden_activation"`
	MLPBias          *bool           `json:"mlp_bias"`
	NormBias         *bool           `json:"norm_bias"`
	GlobalEvery      *int            `json:"global_attn_every_n_layers"`
	LocalAttention   *int            `json:"local_attention"`
	GlobalTheta      *float64        `json:"global_rope_theta"`
	LocalTheta       *float64        `json:"local_rope_theta"`
	RMSEpsilon       *float64        `json:"rms_norm_eps"` // Qwen3 from here
	RopeTheta        *float64        `json:"rope_theta"`
	HeadSize         *int            `json:"head_dim"`
	KeyHeads         *int            `json:"num_key_value_heads"`
	UseWindow        *bool           `json:"use_sliding_window"`
	Window           *int            `json:"sliding_window"`
	WindowFrom       *int            `json:"max_window_layers"`
	Causal           *bool           `json:"is_causal"` // refused elsewhere

	// How NomicBERT's authors spell what its port calls as BERT does, and what only
	// they have.
	NomicHidden    int      `json:"n_embd"`
	NomicLayers    int      `json:"n_layer"`
	NomicHeads     int      `json:"n_head"`
	NomicInner     int      `json:"n_inner"`
	NomicPositions int      `json:"n_positions"`
	NomicEpsilon   *float64 `json:"layer_norm_epsilon"`
	NomicAct       *string  `json:"activation_function"`
	NomicTheta     *float64 `json:"rotary_emb_base"`
	NomicPart      *float64 `json:"rotary_emb_fraction"`
	NomicScaling   *float64 `json:"rotary_scaling_factor"`
	NomicScaleBase *float64 `json:"rotary_emb_scale_base"`
	Interleaved    *bool    `json:"rotary_emb_interleaved"`
	Prenorm        *bool    `json:"prenorm"`
	NomicRMS       *bool    `json:"use_rms_norm"`
	NomicCausal    *bool    `json:"causal"`
	Parallel       *bool    `json:"parallel_block"`
	Experts        *int     `json:"num_experts"`
	QKVBias        *bool    `json:"qkv_proj_bias"`
	FC1Bias        *bool    `json:"mlp_fc1_bias"`
	FC2Bias        *bool    `json:"mlp_fc2_bias"`

	Decoder      bool                       `json:"is_decoder"`
	CrossAttn    bool                       `json:"add_cross_attention"`
	Quantization json.RawMessage            `json:"quantization_config"`
	Compression  json.RawMessage            `json:"compression_config"`
	WeightsFile  string                     `json:"transformers_weights"`
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
	if c.ModelType == "nomic_bert" && c.NomicHidden > 0 {
		c.unify()
	}
	return c, nil
}

// unify puts what NomicBERT's authors wrote where its port has it.
func (c *config) unify() {
	c.HiddenSize, c.Layers, c.Heads = c.NomicHidden, c.NomicLayers, c.NomicHeads
	c.Intermediate, c.Positions = c.NomicInner, c.NomicPositions
	act := map[string]string{"swiglu": "silu", "geglu": "gelu"}[or(c.NomicAct, "gelu")]
	c.Activation = &act
	// Their code has biases unless it is told.
	yes := true
	for _, bias := range []**bool{&c.QKVBias, &c.FC1Bias, &c.FC2Bias} {
		if *bias == nil {
			*bias = &yes
		}
	}
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
