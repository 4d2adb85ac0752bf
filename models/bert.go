package models

import "fmt"

// The embedding tables of most kinds.
const (
	embWords     = "embeddings.word_embeddings.weight"
	embPositions = "embeddings.position_embeddings.weight"
	embTypes     = "embeddings.token_type_embeddings.weight"
	embNorm      = "embeddings.LayerNorm"
)

// bert is BERT, which the kinds around it differ from.
func bert(c config) encoder {
	return encoder{
		vocab: c.VocabSize, width: c.HiddenSize, hidden: c.HiddenSize, heads: c.Heads, inner: c.Intermediate,
		positions: c.Positions, types: or(c.Types, 2), count: c.Layers,
		epsilon: or(c.Epsilon, 1e-12), act: or(c.Activation, "gelu"), actField: "hidden_act", epsilonField: "layer_norm_eps", prefix: "bert.",
		words: embWords, positionTable: embPositions, typeTable: embTypes, norm: embNorm,
		layer: bertLayer,
	}
}

func bertLayer(l int) layer {
	p := fmt.Sprintf("encoder.layer.%d.", l)
	return layer{
		query: p + "attention.self.query", key: p + "attention.self.key", value: p + "attention.self.value",
		output: p + "attention.output.dense", attentionNorm: p + "attention.output.LayerNorm",
		inner: p + "intermediate.dense", outer: p + "output.dense", outputNorm: p + "output.LayerNorm",
	}
}
