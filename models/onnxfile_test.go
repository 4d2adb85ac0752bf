package models

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// external makes a graph with one tensor in a file of its own.
func external(location, offset, length string) string {
	entry := func(k, v string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: &k, Value: &v}
	}
	b, err := proto.Marshal(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
		Input:  []*onnxpb.ValueInfoProto{value("input_ids", onnxpb.TensorProto_INT64, dim("b"), dim("s"))},
		Output: []*onnxpb.ValueInfoProto{value("last_hidden_state", onnxpb.TensorProto_FLOAT, dim("b"), dim("s"), size(24))},
		Initializer: []*onnxpb.TensorProto{{
			Name: proto.String("w"), Dims: []int64{2, 2}, DataType: proto.Int32(1), DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
			ExternalData: []*onnxpb.StringStringEntryProto{entry("location", location), entry("offset", offset), entry("length", length)},
		}},
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestExternalDataStaysInside(t *testing.T) {
	for name, c := range map[string]struct{ location, offset, length, want string }{
		"good":            {"model.onnx_data", "4", "16", ""},
		"out":             {"../secret", "0", "16", "leads out of the model's folder"},
		"absolute":        {"/etc/passwd", "0", "16", "leads out of the model's folder"},
		"empty":           {"", "0", "16", "leads out of the model's folder"},
		"missing":         {"no", "0", "16", `its weights lie in "no", which is missing`},
		"past the end":    {"model.onnx_data", "5", "16", "needs 16 bytes from byte 5 on, but the file has 20"},
		"offset overflow": {"model.onnx_data", "9223372036854775807", "16", "but the file has 20"},
		"negative":        {"model.onnx_data", "-4", "16", `the offset "-4"`},
		"no number":       {"model.onnx_data", "0", "x", `the length "x"`},
		"a folder":        {"sub", "0", "0", "but the file has"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
			put(t, dir, "onnx/model.onnx", external(c.location, c.offset, c.length))
			put(t, dir, "onnx/model.onnx_data", strings.Repeat("x", 20))
			put(t, dir, "onnx/sub/x", "")
			put(t, dir, "secret", strings.Repeat("x", 20))
			m, err := Open(dir, Options{ONNX: true})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				before := m.Recipe.ModelDigest
				put(t, dir, "onnx/model.onnx_data", strings.Repeat("y", 20))
				if m, err = Open(dir, Options{ONNX: true}); err != nil || m.Recipe.ModelDigest == before {
					t.Errorf("external data does not change the digest (%v)", err)
				}
				return
			}
			if f := fault.Of(err); f == nil || f.Class != fault.ModelRefused || !strings.Contains(f.Message, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whatever the bytes are, opening ends with a model or one refusal, and the
// head merges into every graph that is accepted.
func FuzzONNXFile(f *testing.F) {
	f.Add([]byte(external("model.onnx_data", "0", "16")))
	f.Add([]byte(external("../x", "0", "16")))
	f.Add([]byte("\x3a\x00"))
	dir := tiny(f)
	put(f, dir, "model.onnx_data", strings.Repeat("x", 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		put(t, dir, "model.onnx", string(b))
		m, err := Open(dir, Options{ONNX: true})
		if err != nil {
			if !fault.Is(err, fault.ModelRefused) {
				t.Fatal(err)
			}
			return
		}
		g, err := m.Graph(false)
		if err != nil {
			t.Fatal(err)
		}
		var merged onnxpb.ModelProto
		if err := proto.Unmarshal(g.Proto, &merged); err != nil {
			t.Fatal(err)
		}
		out := merged.GetGraph().GetOutput()
		if out[len(out)-1].GetName() != g.Output {
			t.Fatalf("the last output is %q, not %q", out[len(out)-1].GetName(), g.Output)
		}
	})
}
