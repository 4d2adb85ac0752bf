package models

import (
	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// Versions of the file format and of the operator sets that built graphs use.
// Every ONNX Runtime since 1.24 reads them. Gelu came with operator set 20.
const (
	irVersion = 10
	opset     = 20
)

// fusedDomain is where ONNX Runtime's own operators live.
const fusedDomain = "com.microsoft"

// builder builds a graph from tensors of a folder.
type builder struct {
	*nodes
	t       *tensors
	weights map[string]string // values that hold a tensor
}

func newBuilder(t *tensors) *builder {
	return &builder{nodes: newNodes("v"), t: t, weights: map[string]string{}}
}

// weight is a tensor in the numbers of the graph. Other numbers are converted by a
// Cast, which ONNX Runtime runs once, when it opens the graph.
func (b *builder) weight(name string) string {
	if v, ok := b.weights[name]; ok {
		return v
	}
	x := b.t.initializer(name)
	v := b.tensor(x)
	switch is := onnxpb.TensorProto_DataType(x.GetDataType()); {
	case b.half && is != onnxpb.TensorProto_FLOAT16:
		v = b.narrow(v)
	case !b.half && is != onnxpb.TensorProto_FLOAT:
		v = b.float32(v)
	}
	b.weights[name] = v
	return v
}

// linear is scale × (x × weightᵀ + bias) for rows x. The weights are used as
// they lie in the file, [out, in], by Gemm with transB, which ONNX Runtime packs
// once when it opens the graph.
func (b *builder) linear(name, x string, scale float64) string {
	attrs := []*onnxpb.AttributeProto{attrInt("transB", 1)}
	if scale != 1 {
		attrs = append(attrs, attrFloat("alpha", scale), attrFloat("beta", scale))
	}
	return b.op("Gemm", b.withBias(x, name), attrs...)
}

// withBias is the inputs of a layer: x, the weight, and the bias if it has one.
func (b *builder) withBias(x, name string) []string {
	in := []string{x, b.weight(name + ".weight")}
	if bias := name + ".bias"; b.t.wanted[bias] {
		in = append(in, b.weight(bias))
	}
	return in
}

// layerNorm normalizes each row.
func (b *builder) layerNorm(name, x string, epsilon float64) string {
	return b.op("LayerNormalization", b.withBias(x, name), attrInt("axis", -1), attrFloat("epsilon", epsilon))
}

// rmsNorm divides each row by its root mean square, by ONNX Runtime's own operator:
// sums by the Reduce operators would depend on the shape of the batch. The result
// is scaled on the way.
func (b *builder) rmsNorm(name, x string, epsilon, scale float64) string {
	w := b.weight(name + ".weight")
	if scale != 1 {
		w = b.op("Mul", []string{w, b.float(scale)})
	}
	return b.op("SimplifiedLayerNormalization", []string{x, w}, attrInt("axis", -1), attrFloat("epsilon", epsilon))
}

// model is the finished graph.
func (b *builder) model(name string) ([]byte, error) {
	b.pb.Name = proto.String(name)
	m := &onnxpb.ModelProto{
		IrVersion:    proto.Int64(irVersion),
		ProducerName: proto.String("localembed"),
		OpsetImport:  []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
		Graph:        &b.pb,
	}
	for _, n := range b.pb.Node {
		if n.GetDomain() == fusedDomain {
			m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String(fusedDomain), Version: proto.Int64(1)})
			break
		}
	}
	pb, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fault.New(fault.Internal, "the graph cannot be written").In(b.t.folder.dir).Because(err)
	}
	return pb, nil
}
