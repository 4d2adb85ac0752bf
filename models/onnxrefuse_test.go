package models

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// What an ONNX file cannot give is one sentence that names it, whether a graph can be
// built from the folder or not.
func TestONNXFilesThatAreRefused(t *testing.T) {
	ids := func(kind onnxpb.TensorProto_DataType, dims ...*onnxpb.TensorShapeProto_Dimension) *onnxpb.ValueInfoProto {
		return value("input_ids", kind, dims...)
	}
	input := func(name string) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) {
			m.Graph.Input = append(m.Graph.Input, value(name, onnxpb.TensorProto_INT64, dim("b"), dim("s")))
		}
	}
	inputs := func(in ...*onnxpb.ValueInfoProto) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) { m.Graph.Input = in }
	}
	outputs := func(out ...*onnxpb.ValueInfoProto) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) { m.Graph.Output = out }
	}
	const float, whole = onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT64
	states := value("last_hidden_state", float, dim("b"), dim("s"), size(24))
	for name, c := range map[string]struct {
		change func(*onnxpb.ModelProto)
		want   string
	}{
		"keys and values":     {input("past_key_values.0.key"), `has an input "past_key_values.0.key" that localembed does not know`},
		"an image":            {input("pixel_values"), `has an input "pixel_values" that`},
		"an input twice":      {input("input_ids"), `two inputs or outputs with the name "input_ids"`},
		"an output twice":     {outputs(states, states), `two inputs or outputs with the name "last_hidden_state"`},
		"in and out":          {outputs(states, ids(whole, dim("b"), dim("s"))), `two inputs or outputs with the name "input_ids"`},
		"no ids":              {inputs(value("attention_mask", whole, dim("b"), dim("s"))), "no input input_ids"},
		"no inputs":           {inputs(), "no input input_ids"},
		"ids of floats":       {inputs(ids(float, dim("b"), dim("s"))), "elements of type FLOAT, neither INT64 nor INT32"},
		"ids of no type":      {inputs(&onnxpb.ValueInfoProto{Name: proto.String("input_ids")}), "elements of type UNDEFINED"},
		"one row of ids":      {inputs(ids(whole, dim("s"))), `"input_ids" has the shape [s] where any number of texts and tokens`},
		"ids of three axes":   {inputs(ids(whole, dim("b"), dim("s"), size(4))), `the shape [b, s, 4]`},
		"one text":            {inputs(ids(whole, size(1), dim("s"))), `the shape [1, s]`},
		"one length":          {inputs(ids(whole, dim(""), size(128))), `the shape [?, 128]`},
		"no outputs":          {outputs(), "no output of the graph can be used"},
		"states of two axes":  {outputs(value("last_hidden_state", float, dim("s"), size(24)), value("x", float)), `it has "last_hidden_state" of rank 2, "x" of rank 0`},
		"states of four axes": {outputs(value("last_hidden_state", float, dim("b"), dim("h"), dim("s"), size(24))), `"last_hidden_state" of rank 4`},
		"a vector of three":   {outputs(value("sentence_embedding", float, dim("b"), dim("s"), size(24)), value("x", float)), `"sentence_embedding" of rank 3`},
		"whole numbers":       {outputs(value("last_hidden_state", whole, dim("b"), dim("s"), size(24))), "elements of type INT64, neither FLOAT nor FLOAT16"},
		"a huge width":        {outputs(value("last_hidden_state", float, dim("b"), dim("s"), size(1<<40))), `"last_hidden_state" has 1099511627776 columns; no model has more`},
		"a name of ours": {func(m *onnxpb.ModelProto) {
			m.Graph.Node = []*onnxpb.NodeProto{{Output: []string{"localembed/vector"}}}
		}, "localembed keeps for itself"},
		"an old operator set": {func(m *onnxpb.ModelProto) { m.OpsetImport = imports(10) }, "operator set 10; 11 to 26 are supported"},
		"a new operator set":  {func(m *onnxpb.ModelProto) { m.OpsetImport = imports(27) }, "operator set 27; 11 to 26"},
		"no operator set":     {func(m *onnxpb.ModelProto) { m.OpsetImport = nil }, "it names no operator set"},
		"another's set alone": {func(m *onnxpb.ModelProto) { m.OpsetImport[0].Domain = proto.String("com.microsoft") }, "it names no operator set"},
		"no graph":            {func(m *onnxpb.ModelProto) { m.Graph = nil }, "it is not an ONNX model"},
		"a huge tensor": {func(m *onnxpb.ModelProto) {
			w := m.Graph.Initializer[0]
			w.Dims, w.ExternalData = []int64{math.MaxInt64, 2}, w.ExternalData[:1]
		}, "needs 9223372036854775807 bytes from byte 0 on, but the file has 16"},
	} {
		t.Run(name, func(t *testing.T) {
			m := externalModel("model.onnx_data", "0", "16")
			c.change(m)
			refused(t, marshal(m), c.want)
		})
	}
	good := externalModel("model.onnx_data", "0", "16")
	good.Graph.Input = []*onnxpb.ValueInfoProto{{Name: proto.String("input_ids"), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(whole))}}}}}
	if err := openWith(t, marshal(good), Options{ONNX: true}); err != nil {
		t.Errorf("an input without a shape: %v", err)
	}
	raw := marshal(good)
	for n := range len(raw) - 1 {
		if err := openWith(t, raw[:n+1], Options{ONNX: true}); err != nil && !fault.Is(err, fault.ModelRefused) {
			t.Fatalf("cut to %d bytes: %v", n+1, err)
		}
	}
	refused(t, raw[:len(raw)/2], "it is not an ONNX model")
	if err := openWith(t, raw, Options{Precision: "fp16", ONNX: true}); !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), "onnx/model.onnx keeps the numbers that it has") {
		t.Errorf("fp16: %v", err)
	}
}

func refused(t *testing.T, raw, want string) {
	t.Helper()
	for _, o := range []Options{{ONNX: true}, {}} {
		err := openWith(t, raw, o)
		f := fault.Of(err)
		if f == nil || f.Class != fault.ModelRefused || !strings.Contains(f.Message, want) || strings.Contains(f.Message, "\n") || f.File == "" || f.Hint == "" {
			t.Errorf("got %v, want a refusal with %q", err, want)
		}
	}
}

// openWith opens a folder with this ONNX file, and without other weights unless o asks
// for the file.
func openWith(t *testing.T, raw string, o Options) error {
	t.Helper()
	dir := tiny(t)
	if !o.ONNX {
		remove(t, dir, "model.safetensors")
	}
	put(t, dir, "onnx/model.onnx", raw)
	put(t, dir, "onnx/model.onnx_data", strings.Repeat("x", 16))
	_, err := Open(dir, o)
	return err
}
