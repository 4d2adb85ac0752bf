package models

import (
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
	quantized string // how and by which operators, "" where it is not
	dynamic   bool   // it quantizes what flows through it by what is in the batch
	guessed   bool   // the output is taken because it is the only one
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
	named := false
	for _, o := range m.GetOpsetImport() {
		if o.GetDomain() != "" && o.GetDomain() != "ai.onnx" {
			continue
		}
		named = true
		if v := o.GetVersion(); v < MinOpset || v > MaxOpset {
			return x.folder.refuse(x.rel, "it uses operator set %d; %d to %d are supported", v, MinOpset, MaxOpset).
				Hinting("export the model again with one of them, 17 say")
		}
	}
	if !named {
		return x.folder.refuse(x.rel, "it names no operator set").
			Hinting("export the model again")
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
