package models

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	"localembed/models/onnxpb"
)

const tensorInt64 = onnxpb.TensorProto_INT64

// nodes collects the nodes and initializers of a graph. Values are named by
// counting behind a prefix, so that two collections never clash.
type nodes struct {
	prefix string
	pb     onnxpb.GraphProto
	body   *onnxpb.GraphProto // that nodes are added to: pb, or a graph inside
	count  int
	half   bool              // numbers are fp16 rather than fp32
	consts map[string]string // integer constants that are there already, by their spelling
}

func newNodes(prefix string) *nodes {
	n := &nodes{prefix: prefix, consts: map[string]string{}}
	n.body = &n.pb
	return n
}

func (n *nodes) fresh() string {
	n.count++
	return n.prefix + strconv.Itoa(n.count)
}

// op adds a node with one output and returns the output's name.
func (n *nodes) op(kind string, inputs []string, attrs ...*onnxpb.AttributeProto) string {
	out := n.fresh()
	n.body.Node = append(n.body.Node, &onnxpb.NodeProto{
		OpType: proto.String(kind), Input: inputs, Output: []string{out}, Attribute: attrs,
	})
	return out
}

// foreign adds a node of another domain than ONNX's own, with one output. An
// input "" is left out.
func (n *nodes) foreign(domain, kind string, inputs []string, attrs ...*onnxpb.AttributeProto) string {
	out := n.op(kind, inputs, attrs...)
	n.body.Node[len(n.body.Node)-1].Domain = proto.String(domain)
	return out
}

// float32 casts a value to fp32.
func (n *nodes) float32(x string) string {
	return n.op("Cast", []string{x}, attrInt("to", int64(onnxpb.TensorProto_FLOAT)))
}

// name gives a value a name of its own.
func (n *nodes) name(value, as string) {
	n.body.Node = append(n.body.Node, &onnxpb.NodeProto{
		OpType: proto.String("Identity"), Input: []string{value}, Output: []string{as},
	})
}

// loop runs what body adds for at = 0, 1 … count-1, an int64 without dimensions, and
// returns its values, all of one shape, below each other: [count, shape]. count is int64 [1].
func (n *nodes) loop(count string, body func(at string) string) string {
	at, more := n.fresh(), n.fresh()
	g := n.inside(func() []string {
		value := body(at)
		return []string{n.op("Identity", []string{more}), value}
	})
	g.Input = []*onnxpb.ValueInfoProto{value(at, tensorInt64), value(more, onnxpb.TensorProto_BOOL)}
	return n.op("Loop", []string{count, ""}, attrGraph("body", g))
}

// either is the value of what one adds where a condition holds, and of what two adds where not.
func (n *nodes) either(condition string, one, two func() string) string {
	branch := func(add func() string) *onnxpb.GraphProto {
		return n.inside(func() []string { return []string{add()} })
	}
	return n.op("If", []string{condition}, attrGraph("then_branch", branch(one)), attrGraph("else_branch", branch(two)))
}

// inside is a graph of the nodes that add adds, and of the values that it returns. It
// sees the values of the graph around it.
func (n *nodes) inside(add func() []string) *onnxpb.GraphProto {
	outer, g := n.body, &onnxpb.GraphProto{Name: proto.String(n.fresh())}
	n.body = g
	defer func() { n.body = outer }()
	for _, name := range add() {
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: proto.String(name)})
	}
	return g
}

// input declares an input of shape [items, length].
func (n *nodes) input(name string) {
	n.pb.Input = append(n.pb.Input, value(name, onnxpb.TensorProto_INT64, dim("items"), dim("length")))
}

// output declares an fp32 output of shape [items, width].
func (n *nodes) output(name string, width int) {
	n.pb.Output = append(n.pb.Output, value(name, onnxpb.TensorProto_FLOAT, dim("items"), size(width)))
}

// tensor adds an initializer.
func (n *nodes) tensor(t *onnxpb.TensorProto) string {
	n.pb.Initializer = append(n.pb.Initializer, t)
	return t.GetName()
}

// ints is a vector of int64.
func (n *nodes) ints(vs ...int64) string {
	var raw []byte
	for _, v := range vs {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return n.constant(tensorInt64, []int64{int64(len(vs))}, raw)
}

// floats is a vector of fp32.
func (n *nodes) floats(vs []float32) string {
	var raw []byte
	for _, v := range vs {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return n.constant(onnxpb.TensorProto_FLOAT, []int64{int64(len(vs))}, raw)
}

// halves cuts a value in two along its last axis.
func (n *nodes) halves(x string) (one, two string) {
	one = n.op("Split", []string{x}, attrInt("axis", -1), attrInt("num_outputs", 2))
	two = n.fresh()
	node := n.body.Node[len(n.body.Node)-1]
	node.Output = append(node.Output, two)
	return one, two
}

// scalarInt is an int64 without dimensions.
func (n *nodes) scalarInt(v int64) string {
	return n.constant(tensorInt64, nil, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// float is a scalar of fp32, or of fp16 where the graph computes in it.
func (n *nodes) float(v float64) string {
	raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
	return n.narrow(n.constant(onnxpb.TensorProto_FLOAT, nil, raw))
}

// narrow makes fp16 of a value of fp32 where the graph computes in it. ONNX Runtime
// does so once where the value is constant.
func (n *nodes) narrow(x string) string {
	if !n.half {
		return x
	}
	return n.op("Cast", []string{x}, attrInt("to", int64(onnxpb.TensorProto_FLOAT16)))
}

func (n *nodes) constant(kind onnxpb.TensorProto_DataType, dims []int64, raw []byte) string {
	spelling := fmt.Sprint(kind, dims) + string(raw)
	if name, ok := n.consts[spelling]; ok {
		return name
	}
	name := n.tensor(&onnxpb.TensorProto{
		Name: proto.String(n.fresh()), DataType: proto.Int32(int32(kind)), Dims: dims, RawData: raw,
	})
	n.consts[spelling] = name
	return name
}

// Attributes of nodes.

func attrInt(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}

func attrInts(name string, vs ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: vs}
}

func attrFloat(name string, v float64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(float32(v))}
}

func attrGraph(name string, g *onnxpb.GraphProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g}
}

func attrString(name, v string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(v)}
}

func value(name string, kind onnxpb.TensorProto_DataType, dims ...*onnxpb.TensorShapeProto_Dimension) *onnxpb.ValueInfoProto {
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(kind)), Shape: &onnxpb.TensorShapeProto{Dim: dims},
		}},
	}}
}

// dim is a dimension that is known only at run time.
func dim(name string) *onnxpb.TensorShapeProto_Dimension {
	return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: name}}
}

// size is a dimension that is known.
func size(n int) *onnxpb.TensorShapeProto_Dimension {
	return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(n)}}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
