package models

import "fmt"

// nomicBERT is NomicBERT: BERT with rotary positions and gates. Its config.json has
// BERT's names, or those of GPT-2 that its authors wrote (see config.unify); the
// tensors have one set of names.
func nomicBERT(c config) encoder {
	e := bert(c)
	e.prefix = "nomic_bert."
	base := c.RopeTheta
	if c.NomicHidden > 0 { // what the authors wrote; the port does not know their names
		base, e.epsilon = c.NomicTheta, or(c.NomicEpsilon, e.epsilon)
	}
	e.act = or(c.Activation, "silu")
	e.positionTable, e.norm = "", "emb_ln"
	if e.types == 0 {
		e.typeTable = ""
	}
	e.size = or(c.HeadSize, 0)
	e.bare = bare{attention: !or(c.QKVBias, false), output: !or(c.QKVBias, false), mlp: !or(c.FC1Bias, false), outer: !or(c.FC2Bias, false)}
	e.layer = func(l int) layer {
		p := fmt.Sprintf("encoder.layers.%d.", l)
		return layer{
			query: p + "attn.Wqkv#0/3", key: p + "attn.Wqkv#1/3", value: p + "attn.Wqkv#2/3",
			output: p + "attn.out_proj", attentionNorm: p + "norm1",
			inner: p + "mlp.fc12", up: p + "mlp.fc11", outer: p + "mlp.fc2", outputNorm: p + "norm2",
		}
	}
	theta, wrong := c.rope("", base, 1000)
	e.view = func(int) view { return view{everywhere, theta} }
	switch {
	case wrong != "":
		e.wrong = wrong
	case e.act == "":
		e.wrong = fmt.Sprintf("activation_function %q is not supported, only swiglu and geglu", or(c.NomicAct, ""))
	case or(c.NomicPart, 1) != 1:
		e.wrong = fmt.Sprintf("rotary_emb_fraction %g is not supported, only 1", *c.NomicPart)
	case c.NomicScaling != nil:
		e.wrong = fmt.Sprintf("rotary_scaling_factor %g is not supported, only null", *c.NomicScaling)
	case c.NomicScaleBase != nil:
		e.wrong = "rotary_emb_scale_base is not supported, only null"
	case or(c.Experts, 0) > 0:
		e.wrong = fmt.Sprintf("num_experts %d is not supported: a mixture of experts cannot be built", *c.Experts)
	}
	for name, on := range map[string]*bool{
		"rotary_emb_interleaved": c.Interleaved, "prenorm": c.Prenorm, "use_rms_norm": c.NomicRMS, "causal": c.NomicCausal, "parallel_block": c.Parallel,
	} {
		if or(on, false) {
			e.wrong = name + " is not supported, only false"
		}
	}
	return e
}
