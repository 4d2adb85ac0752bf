package models

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"localembed/models/onnxpb"
)

// roles of inputs by their names.
var roles = map[string]Role{
	"input_ids": IDs, "attention_mask": Mask, "token_type_ids": Types, "position_ids": Positions,
}

// maxWidth is far above what any model has, and so small that sizes computed from it do
// not overflow.
const maxWidth = 1 << 24

// readInputs takes the inputs that it knows, and refuses others: what they would need is
// not known either.
func (x *onnxFile) readInputs(m *onnxpb.ModelProto) error {
	g := m.GetGraph()
	weights := map[string]bool{} // old files list their weights among the inputs
	for _, t := range g.GetInitializer() {
		weights[t.GetName()] = true
	}
	for _, in := range g.GetInput() {
		if weights[in.GetName()] {
			continue
		}
		role, ok := roles[in.GetName()]
		if !ok {
			return x.folder.refuse(x.rel, "the graph has an input %q that localembed does not know", in.GetName()).
				Hinting("known are input_ids, attention_mask, token_type_ids and position_ids")
		}
		kind := onnxpb.TensorProto_DataType(in.GetType().GetTensorType().GetElemType())
		if kind != onnxpb.TensorProto_INT64 && kind != onnxpb.TensorProto_INT32 {
			return x.folder.refuse(x.rel, "the input %q has elements of type %v, neither INT64 nor INT32", in.GetName(), kind)
		}
		if err := x.anyShape(in); err != nil {
			return err
		}
		x.inputs = append(x.inputs, Input{Name: in.GetName(), Role: role, Int32: kind == onnxpb.TensorProto_INT32})
	}
	if !slices.ContainsFunc(x.inputs, func(in Input) bool { return in.Role == IDs }) {
		return x.folder.refuse(x.rel, "the graph has no input input_ids")
	}
	return nil
}

// anyShape refuses an input that does not take [texts, tokens] of any size. One without
// a shape says nothing.
func (x *onnxFile) anyShape(in *onnxpb.ValueInfoProto) error {
	shape := in.GetType().GetTensorType().GetShape()
	if shape == nil {
		return nil
	}
	dims := make([]string, 0, 2)
	fixed := len(shape.GetDim()) != 2
	for _, d := range shape.GetDim() {
		text := d.GetDimParam()
		if v, ok := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue); ok && v.DimValue >= 0 {
			text, fixed = strconv.FormatInt(v.DimValue, 10), true
		}
		dims = append(dims, cmp.Or(text, "?"))
	}
	if !fixed {
		return nil
	}
	return x.folder.refuse(x.rel, "the input %q has the shape [%s] where any number of texts and tokens is needed", in.GetName(), strings.Join(dims, ", ")).
		Hinting("export the model again with dynamic axes for both")
}

// readOutput chooses the output: a vector if there is one and it may be taken,
// else hidden states.
func (x *onnxFile) readOutput(g *onnxpb.GraphProto, hidden bool) error {
	rank := func(v *onnxpb.ValueInfoProto) int { return len(v.GetType().GetTensorType().GetShape().GetDim()) }
	find := func(want int, names ...string) *onnxpb.ValueInfoProto {
		for _, name := range names {
			for _, v := range g.GetOutput() {
				if v.GetName() == name && rank(v) == want {
					return v
				}
			}
		}
		return nil
	}
	var out *onnxpb.ValueInfoProto
	if !hidden {
		out = find(2, "sentence_embedding")
	}
	if out == nil {
		out = find(3, "last_hidden_state", "token_embeddings")
	}
	if only := g.GetOutput(); out == nil && len(only) == 1 && !isHead(only[0].GetName()) && (rank(only[0]) == 3 || rank(only[0]) == 2 && !hidden) {
		out = only[0]
		x.guessed = true
	}
	if out == nil {
		var found []string
		for _, v := range g.GetOutput() {
			found = append(found, fmt.Sprintf("%q of rank %d", v.GetName(), rank(v)))
		}
		return x.folder.refuse(x.rel, "no output of the graph can be used: it has %s", strings.Join(found, ", ")).
			Hinting("wanted is last_hidden_state or token_embeddings of rank 3, or sentence_embedding of rank 2")
	}
	kind := onnxpb.TensorProto_DataType(out.GetType().GetTensorType().GetElemType())
	if kind != onnxpb.TensorProto_FLOAT && kind != onnxpb.TensorProto_FLOAT16 {
		return x.folder.refuse(x.rel, "the output %q has elements of type %v, neither FLOAT nor FLOAT16", out.GetName(), kind)
	}
	x.output, x.half, x.pooled = out.GetName(), kind == onnxpb.TensorProto_FLOAT16, rank(out) == 2
	dims := out.GetType().GetTensorType().GetShape().GetDim()
	width := dims[len(dims)-1].GetDimValue()
	if width > maxWidth {
		return x.folder.refuse(x.rel, "the output %q has %d columns; no model has more than %d", out.GetName(), width, maxWidth)
	}
	x.dim = int(max(width, 0))
	return nil
}

// isHead reports whether an output's name says that it is what a head for another task
// gives, which looks like hidden states or a vector by its rank alone.
func isHead(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"logit", "pooler", "predict", "score", "loss", "prob", "label"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
