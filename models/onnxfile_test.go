package models

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// external makes a graph with one tensor of 2 × 2 floats in a file of its own. An empty
// length is left out.
func external(location, offset, length string) string {
	return marshal(externalModel(location, offset, length))
}

func marshal(m *onnxpb.ModelProto) string {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func externalModel(location, offset, length string) *onnxpb.ModelProto {
	entry := func(k, v string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: &k, Value: &v}
	}
	data := []*onnxpb.StringStringEntryProto{entry("location", location), entry("offset", offset)}
	if length != "" {
		data = append(data, entry("length", length))
	}
	return &onnxpb.ModelProto{OpsetImport: imports(17), Graph: &onnxpb.GraphProto{
		Input:  []*onnxpb.ValueInfoProto{value("input_ids", onnxpb.TensorProto_INT64, dim("b"), dim("s"))},
		Output: []*onnxpb.ValueInfoProto{value("last_hidden_state", onnxpb.TensorProto_FLOAT, dim("b"), dim("s"), size(24))},
		Initializer: []*onnxpb.TensorProto{{
			Name: proto.String("w"), Dims: []int64{2, 2}, DataType: proto.Int32(1), DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
			ExternalData: data,
		}},
	}}
}

func imports(version int64) []*onnxpb.OperatorSetIdProto {
	return []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: &version}}
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
		"no length":       {"model.onnx_data", "5", "", "needs 16 bytes from byte 5 on, but the file has 20"},
		"a link out":      {"link", "0", "16", "which is a link to a file in"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
			put(t, dir, "onnx/model.onnx", external(c.location, c.offset, c.length))
			put(t, dir, "onnx/model.onnx_data", strings.Repeat("x", 20))
			put(t, dir, "onnx/sub/x", "")
			put(t, dir, "secret", strings.Repeat("x", 20))
			out := t.TempDir()
			put(t, out, "secret", strings.Repeat("x", 20))
			if err := os.Symlink(filepath.Join(out, "secret"), filepath.Join(dir, "onnx/link")); err != nil {
				t.Fatal(err)
			}
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

// What lies in functions and inner graphs is looked at as what lies in the graph.
func TestNodesInsideOfNodes(t *testing.T) {
	node := func(op string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: &op, Attribute: attributes}
	}
	tensor := externalModel("../secret", "0", "16").GetGraph().GetInitializer()[0]
	constant := node("Constant", &onnxpb.AttributeProto{Name: proto.String("value"), T: tensor})
	inner := func(n *onnxpb.NodeProto) *onnxpb.NodeProto {
		return node("If", &onnxpb.AttributeProto{Name: proto.String("then_branch"), G: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{n}}})
	}
	for name, c := range map[string]struct {
		node            *onnxpb.NodeProto
		refused, weighs string
	}{
		"a constant":            {constant, "leads out of the model's folder", ""},
		"dynamic quantization":  {node("DynamicQuantizeLinear"), "", `ONNX, dynamically quantized \(DynamicQuantizeLinear\)`},
		"quantization":          {node("DequantizeLinear"), "", `ONNX, quantized \(DequantizeLinear\)`},
		"nothing of that kind":  {node("MatMul"), "", "ONNX"},
		"a product of integers": {node("MatMulInteger"), "", `ONNX, quantized \(MatMulInteger\)`},
	} {
		for where, put1 := range map[string]func(*onnxpb.ModelProto){
			"graph":    func(m *onnxpb.ModelProto) { m.Graph.Node = []*onnxpb.NodeProto{c.node} },
			"if":       func(m *onnxpb.ModelProto) { m.Graph.Node = []*onnxpb.NodeProto{inner(c.node)} },
			"function": func(m *onnxpb.ModelProto) { m.Functions = []*onnxpb.FunctionProto{{Node: []*onnxpb.NodeProto{c.node}}} },
		} {
			t.Run(name+" in a "+where, func(t *testing.T) {
				m := externalModel("model.onnx_data", "0", "16")
				put1(m)
				dir := tiny(t)
				put(t, dir, "onnx/model.onnx", marshal(m))
				put(t, dir, "onnx/model.onnx_data", strings.Repeat("x", 16))
				model, err := Open(dir, Options{ONNX: true})
				if c.refused != "" {
					if !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), c.refused) {
						t.Errorf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				weights := ""
				for _, f := range model.Facts {
					if f.Name == "weights" {
						weights = f.Value
					}
				}
				if !regexp.MustCompile("^" + c.weighs + `, \d+ bytes$`).MatchString(weights) {
					t.Errorf("weights %q, want %q", weights, c.weighs)
				}
				warned := strings.Join(model.Warnings, " ")
				if strings.Contains(warned, "depends on the other texts of its batch") != (name == "dynamic quantization") ||
					strings.Contains(warned, "are near those of the model") != (name == "quantization" || name == "a product of integers") {
					t.Errorf("warnings %q", model.Warnings)
				}
			})
		}
	}
}

// A path to an ONNX file takes this file with the settings of the folder around it.
func TestPathOfAnONNXFile(t *testing.T) {
	dir := tiny(t)
	put(t, dir, "onnx/model_O4.onnx", external("model.onnx_data", "0", "16"))
	put(t, dir, "onnx/model.onnx_data", strings.Repeat("x", 16))
	m, err := Open(filepath.Join(dir, "onnx", "model_O4.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	built, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Dir != dir || m.Recipe.Pooling != built.Recipe.Pooling || m.Recipe.ModelDigest == built.Recipe.ModelDigest {
		t.Errorf("folder %s, recipe %+v; built %+v", m.Dir, m.Recipe, built.Recipe)
	}
	if err := m.Unchanged(); err != nil {
		t.Error(err)
	}
	t.Chdir(filepath.Join(dir, "onnx"))
	if here, err := Open("model_O4.onnx", Options{}); err != nil || here.Recipe != m.Recipe {
		t.Errorf("from its folder: %v", err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "config.json"): "a model is a folder or an ONNX file",
		filepath.Join(dir, "no.onnx"):     "no such model folder",
	} {
		if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	alone := t.TempDir()
	put(t, alone, "a/b/c/x.onnx", external("d", "0", "16"))
	if _, err := Open(filepath.Join(alone, "a/b/c/x.onnx"), Options{}); !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), "have a config.json") {
		t.Errorf("alone: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "onnx", "model_O4.onnx"), Options{Precision: "fp16"}); !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), "keeps the numbers that it has") {
		t.Errorf("fp16: %v", err)
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
