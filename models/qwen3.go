package models

import "fmt"

// qwen3 is Qwen3: a token attends to itself and those before it; rotary positions,
// norms without a mean, in front of everything and for each head, and several
// heads of queries to one of keys.
func qwen3(c config) encoder {
	e := bert(c)
	e.prefix = "model."
	e.epsilon, e.epsilonField = or(c.RMSEpsilon, 1e-6), "rms_norm_eps"
	e.act = or(c.Activation, "silu")
	e.words, e.positionTable, e.typeTable, e.norm = "embed_tokens.weight", "", "", ""
	e.before, e.finalNorm, e.rms, e.headNorms = true, "norm", true, true
	e.size = or(c.HeadSize, 128)
	e.keyHeads = or(c.KeyHeads, c.Heads)
	e.bare = bare{attention: !or(c.AttentionBias, false), output: !or(c.AttentionBias, false), mlp: true, outer: true, norm: true}
	e.layer = func(l int) layer {
		p := fmt.Sprintf("layers.%d.", l)
		return layer{
			query: p + "self_attn.q_proj", key: p + "self_attn.k_proj", value: p + "self_attn.v_proj", output: p + "self_attn.o_proj",
			queryNorm: p + "self_attn.q_norm", keyNorm: p + "self_attn.k_norm", attentionNorm: p + "input_layernorm",
			inner: p + "mlp.gate_proj", up: p + "mlp.up_proj", outer: p + "mlp.down_proj", outputNorm: p + "post_attention_layernorm",
		}
	}
	theta, wrong := c.rope("", c.RopeTheta, 10_000)
	kinds := map[string]view{fullAttention: {span{-1, 0}, theta}}
	window := 0
	if or(c.UseWindow, false) && c.Window == nil {
		window = 4096
	} else if or(c.UseWindow, false) {
		window = *c.Window
	}
	if window > 0 {
		kinds[localAttention] = view{span{window - 1, 0}, theta}
	}
	switch {
	case wrong != "":
		e.wrong = wrong
	case window < 0:
		e.wrong = fmt.Sprintf("sliding_window is %d", window)
	case !or(c.Causal, true):
		e.wrong = "is_causal false is not supported"
	default:
		from := or(c.WindowFrom, 28)
		e.views(c, kinds, func(l int) bool { return window > 0 && l >= from })
	}
	return e
}
