package models

import (
	"google.golang.org/protobuf/proto"

	"localembed/models/onnxpb"
)

// head is what turns hidden states into vectors: pooling, normalization and
// the cut to the first components, always in fp32.
//
// It sums with MatMul rather than with the Reduce operators. Those of ONNX
// Runtime choose an order of summation by the shape of the whole batch, so that
// a vector's last bits would depend on how many texts it was computed with.
// MatMul has no axes either, which moved from attribute to input between
// versions of the operator set, so that one head fits every graph.
type head struct {
	pooling   string
	normalize bool
	width     int // components of a hidden state
	dims      int // components of a vector
}

const (
	minCount = 1e-9  // as sentence-transformers: a text without tokens has the vector 0
	minNorm  = 1e-12 // as torch.nn.functional.normalize
)

// add appends the head to the value x: [items, length, width], or
// [items, width] for poolNone, of type float. mask is an integer input
// [items, length], "" where all texts have one length. The result is the
// value named output.
func (h head) add(n *nodes, x, mask, output string) {
	switch {
	case h.pooling == poolCLS:
		x = n.op("Gather", []string{x, n.scalarInt(0)}, attrInt("axis", 1))
	case h.pooling == poolMean && mask == "":
		length := n.op("Gather", []string{n.op("Shape", []string{x}), n.ints(1)})
		row := n.op("Concat", []string{n.ints(1), length}, attrInt("axis", 0))
		ones := n.op("Expand", []string{n.float(1), row})
		sum := n.op("Reshape", []string{n.op("MatMul", []string{ones, x}), n.ints(-1, int64(h.width))})
		x = n.op("Div", []string{sum, n.float32(length)})
	case h.pooling == poolMean:
		m := n.float32(mask)
		row := n.op("Reshape", []string{m, n.ints(0, 1, -1)})
		column := n.op("Reshape", []string{m, n.ints(0, -1, 1)})
		count := n.op("Max", []string{n.op("MatMul", []string{row, column}), n.float(minCount)})
		mean := n.op("Div", []string{n.op("MatMul", []string{row, x}), count})
		x = n.op("Reshape", []string{mean, n.ints(-1, int64(h.width))})
	}
	if h.normalize {
		row := n.op("Reshape", []string{x, n.ints(0, 1, -1)})
		column := n.op("Reshape", []string{x, n.ints(0, -1, 1)})
		square := n.op("Reshape", []string{n.op("MatMul", []string{row, column}), n.ints(-1, 1)})
		norm := n.op("Max", []string{n.op("Sqrt", []string{square}), n.float(minNorm)})
		x = n.op("Div", []string{x, norm})
	}
	if h.dims < h.width {
		x = n.op("Slice", []string{x, n.ints(0), n.ints(int64(h.dims)), n.ints(1)})
	}
	n.name(x, output)
	n.output(output, h.dims)
}

// float32 casts a value to fp32.
func (n *nodes) float32(x string) string {
	return n.op("Cast", []string{x}, attrInt("to", int64(onnxpb.TensorProto_FLOAT)))
}

// scalarInt is an int64 without dimensions.
func (n *nodes) scalarInt(v int32) string {
	return n.tensor(&onnxpb.TensorProto{
		Name: proto.String(n.fresh()), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Int64Data: []int64{int64(v)},
	})
}
