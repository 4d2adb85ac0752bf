package models

import "fmt"

// How config.json calls the layers that attend to every token and to near ones.
const (
	fullAttention  = "full_attention"
	localAttention = "sliding_attention"
)

// modernBERT is ModernBERT: rotary positions, norms in front, gates, no biases
// unless asked for, and layers that attend to near tokens alone.
func modernBERT(c config) encoder {
	e := bert(c)
	e.prefix = "model."
	e.epsilon, e.epsilonField = or(c.NormEpsilon, 1e-5), "norm_eps"
	e.act, e.actField = or(c.HiddenActivation, "gelu"), "hidden_activation"
	e.words, e.positionTable, e.typeTable, e.norm = "embeddings.tok_embeddings.weight", "", "", "embeddings.norm"
	e.before, e.finalNorm = true, "final_norm"
	e.bare = bare{attention: !or(c.AttentionBias, false), output: !or(c.AttentionBias, false), mlp: !or(c.MLPBias, false), outer: !or(c.MLPBias, false), norm: !or(c.NormBias, false)}
	e.layer = func(l int) layer {
		p := fmt.Sprintf("layers.%d.", l)
		n := layer{
			query: p + "attn.Wqkv#0/3", key: p + "attn.Wqkv#1/3", value: p + "attn.Wqkv#2/3",
			output: p + "attn.Wo", attentionNorm: p + "attn_norm",
			inner: p + "mlp.Wi#0/2", up: p + "mlp.Wi#1/2", outer: p + "mlp.Wo", outputNorm: p + "mlp_norm",
		}
		if l == 0 {
			n.attentionNorm = "" // the embeddings are normalized already
		}
		return n
	}
	every := or(c.GlobalEvery, 3)
	if every < 1 {
		e.wrong = fmt.Sprintf("global_attn_every_n_layers is %d", every)
		return e
	}
	reach := or(c.Window, or(c.LocalAttention, 128)/2) // to each side; transformers takes sliding_window first
	if reach < 0 {
		e.wrong = fmt.Sprintf("the window of local attention is %d", reach)
		return e
	}
	kinds := map[string]view{}
	for kind, k := range map[string]struct {
		span  span
		theta *float64
		usual float64
	}{
		fullAttention:  {everywhere, c.GlobalTheta, 160_000},
		localAttention: {span{reach, reach}, c.LocalTheta, 10_000},
	} {
		theta, wrong := c.rope(kind, k.theta, k.usual)
		if wrong != "" {
			e.wrong = wrong
		}
		kinds[kind] = view{k.span, theta}
	}
	e.views(c, kinds, func(l int) bool { return l%every != 0 })
	return e
}

// views sets how each layer sees the others by layer_types, or by local where
// config.json has none.
func (e *encoder) views(c config, kinds map[string]view, local func(l int) bool) {
	if c.LayerTypes != nil && len(c.LayerTypes) != c.Layers {
		e.wrong = fmt.Sprintf("layer_types has %d entries for %d layers", len(c.LayerTypes), c.Layers)
		return
	}
	for _, kind := range c.LayerTypes {
		if _, ok := kinds[kind]; !ok {
			e.wrong = fmt.Sprintf("layers of the type %q are not supported", kind)
			return
		}
	}
	e.view = func(l int) view {
		switch {
		case c.LayerTypes != nil:
			return kinds[c.LayerTypes[l]]
		case local(l):
			return kinds[localAttention]
		}
		return kinds[fullAttention]
	}
}
