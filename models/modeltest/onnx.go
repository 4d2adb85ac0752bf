package modeltest

import (
	"encoding/binary"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/models/onnxpb"
)

// LookUp is an ONNX file of an operator set whose hidden states are the rows of the table
// of words; in kind fp16 as such numbers, and in kind dynamic after a product with the
// identity that quantizes them by the largest number of the batch.
func (b *BERT) LookUp(t testing.TB, opset int64, kind string) []byte {
	t.Helper()
	value := func(name string, kind onnxpb.TensorProto_DataType, dims ...*onnxpb.TensorShapeProto_Dimension) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(kind)), Shape: &onnxpb.TensorShapeProto{Dim: dims}}}}}
	}
	named := func(name string) *onnxpb.TensorShapeProto_Dimension {
		return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: name}}
	}
	hidden := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(b.Hidden)}}
	float, ints := onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT64
	g := &onnxpb.GraphProto{
		Name:  proto.String("look up"),
		Input: []*onnxpb.ValueInfoProto{value("attention_mask", ints, named("b"), named("s")), value("input_ids", ints, named("b"), named("s"))},
		Initializer: []*onnxpb.TensorProto{{Name: proto.String("table"), DataType: proto.Int32(int32(float)),
			Dims: []int64{int64(b.Vocab), int64(b.Hidden)}, FloatData: b.Weights[b.Prefix+"embeddings.word_embeddings.weight"].Data}},
	}
	node := func(op string, inputs []string, outputs ...string) *onnxpb.NodeProto {
		n := &onnxpb.NodeProto{OpType: &op, Input: inputs, Output: outputs}
		g.Node = append(g.Node, n)
		return n
	}
	cast := func(from, to string, kind onnxpb.TensorProto_DataType) {
		node("Cast", []string{from}, to).Attribute = []*onnxpb.AttributeProto{{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(kind))}}
	}
	out := "last_hidden_state"
	switch kind {
	case "fp32":
		node("Gather", []string{"table", "input_ids"}, out)
	case "fp16":
		float = onnxpb.TensorProto_FLOAT16
		node("Gather", []string{"table", "input_ids"}, "wide")
		cast("wide", out, float)
	case "dynamic":
		one := make([]byte, b.Hidden*b.Hidden)
		for i := range b.Hidden {
			one[i*b.Hidden+i] = 1
		}
		g.Initializer = append(g.Initializer, &onnxpb.TensorProto{Name: proto.String("one"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT8)),
			Dims: []int64{int64(b.Hidden), int64(b.Hidden)}, RawData: one})
		node("Gather", []string{"table", "input_ids"}, "wide")
		node("DynamicQuantizeLinear", []string{"wide"}, "narrow", "scale", "zero")
		node("MatMulInteger", []string{"narrow", "one", "zero"}, "product")
		cast("product", "float", float)
		node("Mul", []string{"float", "scale"}, out)
	default:
		t.Fatalf("no kind %q", kind)
	}
	g.Output = []*onnxpb.ValueInfoProto{value(out, float, named("b"), named("s"), hidden)}
	return marshal(t, &onnxpb.ModelProto{IrVersion: proto.Int64(10), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: &opset}}})
}

// Outside moves the first weights of an ONNX file, which are floats, to a file of their own.
func Outside(t testing.TB, raw []byte, location string) (onnx, data []byte) {
	t.Helper()
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	w := m.GetGraph().GetInitializer()[0]
	for _, v := range w.GetFloatData() {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	w.FloatData, w.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
	w.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: &location}}
	return marshal(t, &m), data
}

func marshal(t testing.TB, m *onnxpb.ModelProto) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
