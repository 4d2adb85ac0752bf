package models

import "fmt"

// albert is ALBERT: narrow embeddings, and layers that share their weights.
// A group of inner_group_num layers runs several times, and num_hidden_groups
// such groups share num_hidden_layers between them.
func albert(c config) encoder {
	e := bert(c)
	e.prefix = "albert."
	e.act = or(c.Activation, "gelu_new")
	e.width = or(c.Embedding, 128)
	e.project = "encoder.embedding_hidden_mapping_in"
	groups, inner := or(c.Groups, 1), or(c.InnerGroups, 1)
	if groups < 1 || inner < 1 || inner > maxLayers {
		e.wrong = fmt.Sprintf("num_hidden_groups %d with inner_group_num %d is not possible", groups, inner)
		return e
	}
	perGroup := float64(c.Layers) / float64(groups)
	e.count = c.Layers * inner
	e.layer = func(l int) layer {
		group := int(float64(l/inner) / perGroup)
		p := fmt.Sprintf("encoder.albert_layer_groups.%d.albert_layers.%d.", group, l%inner)
		return layer{
			query: p + "attention.query", key: p + "attention.key", value: p + "attention.value",
			output: p + "attention.dense", attentionNorm: p + "attention.LayerNorm",
			inner: p + "ffn", outer: p + "ffn_output", outputNorm: p + "full_layer_layer_norm",
		}
	}
	return e
}
