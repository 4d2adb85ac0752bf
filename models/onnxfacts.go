package models

import (
	"maps"
	"slices"
	"strings"

	"localembed/models/onnxpb"
)

// count sums the work of the linear layers: matrix products with a constant,
// as it lies in the file, or widened, scaled or turned on the way.
func (x *onnxFile) count(g *onnxpb.GraphProto) {
	sizes := map[string]float64{}
	add := func(name string, t *onnxpb.TensorProto) {
		if d := t.GetDims(); len(d) == 2 {
			sizes[name] = float64(d[0]) * float64(d[1])
		}
	}
	for _, t := range g.GetInitializer() {
		add(t.GetName(), t)
	}
	for _, n := range g.GetNode() {
		in, out := n.GetInput(), n.GetOutput()
		switch n.GetOpType() {
		case "Constant":
			for _, a := range n.GetAttribute() {
				if a.GetT() != nil && len(out) > 0 {
					add(out[0], a.GetT())
				}
			}
		case "DequantizeLinear", "Cast", "Mul", "Transpose", "Identity":
			if len(in) > 0 && len(out) > 0 && sizes[in[0]] > 0 {
				sizes[out[0]] = sizes[in[0]]
			}
		case "MatMul", "Gemm", "FusedMatMul", "MatMulInteger", "DynamicQuantizeMatMul":
			if len(in) > 1 {
				x.flops += 2 * sizes[in[1]]
			}
		}
	}
}

// quantization looks for weights of small integers, and for operators that compute with
// them or widen them: in inner graphs and functions too.
func (x *onnxFile) quantization(m *onnxpb.ModelProto) {
	by := map[string]bool{}
	for n := range nodesOf(m) {
		switch op := n.GetOpType(); {
		case strings.HasPrefix(op, "DynamicQuantize"): // Linear, MatMul, LSTM
			x.dynamic = true
			by[op] = true
		case op == "DequantizeLinear", strings.HasPrefix(op, "QLinear"), strings.HasSuffix(op, "Integer"), op == "MatMulNBits":
			by[op] = true
		}
	}
	for _, t := range tensorsOf(m) {
		if kind := onnxpb.TensorProto_DataType(t.GetDataType()); len(t.GetDims()) == 2 && (kind == onnxpb.TensorProto_INT8 || kind == onnxpb.TensorProto_UINT8) {
			by["weights of "+kind.String()] = true
		}
	}
	if len(by) == 0 {
		return
	}
	x.quantized = "quantized"
	if x.dynamic {
		x.quantized = "dynamically quantized"
	}
	x.quantized += " (" + strings.Join(slices.Sorted(maps.Keys(by)), ", ") + ")"
}
