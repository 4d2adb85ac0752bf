package models

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// onnxFile is a graph that the folder brings along. The head is appended to
// its bytes as a second ModelProto: two messages in a row are one message whose
// fields are merged, so that the weights are never touched.
type onnxFile struct {
	folder *folder
	rel    string
	files  []string // the file and its external data, relative to the folder
	dir    string   // where external data really lies, "" if there is none
	bytes  int64
	inputs []Input
	output string // hidden states, or a vector where pooled
	half   bool   // the output is fp16
	pooled bool
	dim    int // 0 if the graph does not say

	flops     float64
	quantized string // how, "" where it is not
	dynamic   bool   // it quantizes what flows through it by what is in the batch
	guessed   bool   // the output is taken because it is the only one
}

// roles of inputs by their names.
var roles = map[string]Role{
	"input_ids": IDs, "attention_mask": Mask, "token_type_ids": Types, "position_ids": Positions,
}

// onnxFiles are the names of an ONNX file; the first that is there counts.
var onnxFiles = []string{"onnx/model.onnx", "model.onnx"}

// maxONNX is the most that a protobuf message, and so a model.onnx, can have.
const maxONNX = 1 << 31

// Operator sets that the head's nodes are tested with; ONNX Runtime knows none above.
const (
	MinOpset = 11
	MaxOpset = 26
)

// appendedPrefix starts the names that the head adds to a foreign graph.
const appendedPrefix = "localembed/"

// onnxFile reads what a graph wants and gives. With hidden, a graph that also
// gives a vector is asked for its hidden states.
func (f *folder) onnxFile(rel string, hidden bool) (*onnxFile, error) {
	x := &onnxFile{folder: f, rel: rel, files: []string{rel}}
	raw, err := x.read()
	if err != nil {
		return nil, err
	}
	x.bytes = int64(len(raw))
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(raw, &m); err != nil || m.GetGraph() == nil {
		return nil, f.refuse(rel, "it is not an ONNX model").
			Hinting("fetch the file again: it is damaged, or only a pointer to the real file")
	}
	for _, step := range []func(*onnxpb.ModelProto) error{
		x.versions, x.readInputs, func(m *onnxpb.ModelProto) error { return x.readOutput(m.GetGraph(), hidden) }, x.external,
	} {
		if err := step(&m); err != nil {
			return nil, err
		}
	}
	x.count(m.GetGraph())
	x.quantization(&m)
	return x, nil
}

func (x *onnxFile) read() ([]byte, error) {
	path := x.folder.path(x.rel)
	st, err := os.Stat(path)
	if err != nil {
		return nil, fault.Of(err)
	}
	if st.Size() >= maxONNX {
		return nil, x.folder.refuse(x.rel, "the file has %d bytes, more than an ONNX file can have", st.Size())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Of(err)
	}
	return raw, nil
}

// versions refuses what the head's nodes cannot be added to, or read from.
func (x *onnxFile) versions(m *onnxpb.ModelProto) error {
	for _, o := range m.GetOpsetImport() {
		if o.GetDomain() != "" && o.GetDomain() != "ai.onnx" {
			continue
		}
		if v := o.GetVersion(); v < MinOpset || v > MaxOpset {
			return x.folder.refuse(x.rel, "it uses operator set %d; %d to %d are supported", v, MinOpset, MaxOpset).
				Hinting("export the model again with one of them, 17 say")
		}
	}
	seen := map[string]bool{}
	for _, v := range slices.Concat(m.GetGraph().GetInput(), m.GetGraph().GetOutput()) {
		if seen[v.GetName()] {
			return x.folder.refuse(x.rel, "the graph has two inputs or outputs with the name %q", v.GetName())
		}
		seen[v.GetName()] = true
	}
	for _, n := range m.GetGraph().GetNode() {
		for _, name := range n.GetOutput() {
			if strings.HasPrefix(name, appendedPrefix) {
				return x.folder.refuse(x.rel, "its value %q has a name that localembed keeps for itself", name)
			}
		}
	}
	return nil
}

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
		x.inputs = append(x.inputs, Input{Name: in.GetName(), Role: role, Int32: kind == onnxpb.TensorProto_INT32})
	}
	if !slices.ContainsFunc(x.inputs, func(in Input) bool { return in.Role == IDs }) {
		return x.folder.refuse(x.rel, "the graph has no input input_ids")
	}
	return nil
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
	if d := dims[len(dims)-1].GetDimValue(); d > 0 && d <= 1<<24 {
		x.dim = int(d)
	}
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
	for _, t := range tensorsOf(m) {
		if kind := onnxpb.TensorProto_DataType(t.GetDataType()); len(t.GetDims()) == 2 && (kind == onnxpb.TensorProto_INT8 || kind == onnxpb.TensorProto_UINT8) {
			x.quantized = "quantized"
		}
	}
	for n := range nodesOf(m) {
		switch op := n.GetOpType(); {
		case strings.HasPrefix(op, "DynamicQuantize"): // Linear, MatMul, LSTM
			x.quantized, x.dynamic = "dynamically quantized", true
			return
		case op == "DequantizeLinear", strings.HasPrefix(op, "QLinear"), strings.HasSuffix(op, "Integer"), op == "MatMulNBits":
			x.quantized = "quantized"
		}
	}
}

// graph appends the head. The graph that is there takes a mask whether texts
// are padded or not.
func (x *onnxFile) graph(h head, f form) (Graph, error) {
	mask := ""
	for _, in := range x.inputs {
		if in.Role == Mask {
			mask = in.Name
		}
	}
	if f.masked && mask == "" {
		return Graph{}, x.folder.refuse(x.rel, "the graph has no input attention_mask, so that texts of different lengths cannot share a batch").
			Hinting("export the model again with an attention mask")
	}
	raw, err := x.read()
	if err == nil && x.dir != "" {
		raw, err = x.linked(raw)
	}
	if err != nil {
		return Graph{}, fault.Of(err)
	}
	n := newNodes(appendedPrefix)
	value := x.output
	if x.half {
		value = n.float32(value)
	}
	output := appendedPrefix + "vector"
	if err := h.add(n, value, mask, output); err != nil {
		return Graph{}, err
	}
	tail, err := proto.MarshalOptions{Deterministic: true}.Marshal(&onnxpb.ModelProto{Graph: &n.pb})
	if err != nil {
		return Graph{}, fault.New(fault.Internal, "the graph cannot be written").In(x.folder.path(x.rel)).Because(err)
	}
	return Graph{Proto: append(raw, tail...), DataDir: x.dir, Inputs: x.inputs, Output: output}, nil
}
