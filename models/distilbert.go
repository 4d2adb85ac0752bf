package models

import "fmt"

// distilbert is DistilBERT: BERT without token types, with names of its own in
// config.json and a fixed epsilon. Its sinusoidal positions are weights too.
func distilbert(c config) encoder {
	e := bert(c)
	e.prefix = "distilbert."
	first := func(vs ...int) int {
		for _, v := range vs {
			if v != 0 {
				return v
			}
		}
		return 0
	}
	e.hidden = first(c.Dim, c.HiddenSize)
	e.width = e.hidden
	e.heads = first(c.DistilHeads, c.Heads)
	e.count = first(c.DistilLayer, c.Layers)
	e.inner = first(c.DistilInner, c.Intermediate)
	e.epsilon = 1e-12
	e.act, e.actField = or(c.DistilAct, "gelu"), "activation"
	e.typeTable = ""
	e.layer = func(l int) layer {
		p := fmt.Sprintf("transformer.layer.%d.", l)
		return layer{
			query: p + "attention.q_lin", key: p + "attention.k_lin", value: p + "attention.v_lin",
			output: p + "attention.out_lin", attentionNorm: p + "sa_layer_norm",
			inner: p + "ffn.lin1", outer: p + "ffn.lin2", outputNorm: p + "output_layer_norm",
		}
	}
	return e
}
