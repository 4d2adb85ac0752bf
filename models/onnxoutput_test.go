package models

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// What a head for another task gives has the rank of hidden states or of a vector, and
// must not be taken for one; nor a width that is not the model's.
func TestOutputsOfONNXFiles(t *testing.T) {
	float := onnxpb.TensorProto_FLOAT
	states := func(name string, width int) *onnxpb.ValueInfoProto {
		return value(name, float, dim("b"), dim("s"), size(width))
	}
	for name, c := range map[string]struct {
		out             *onnxpb.ValueInfoProto
		refused, warned string
	}{
		"hidden states":    {states("last_hidden_state", 24), "", ""},
		"another name":     {states("output", 24), "", `"output", which is taken`},
		"another width":    {states("last_hidden_state", 999), "999 columns", ""},
		"class logits":     {value("logits", float, dim("b"), size(2)), "no output of the graph", ""},
		"word logits":      {states("logits", 30000), "no output of the graph", ""},
		"a pooler's":       {value("pooler_output", float, dim("b"), size(24)), "no output of the graph", ""},
		"a whole number's": {value("last_hidden_state", onnxpb.TensorProto_INT64, dim("b"), dim("s"), size(24)), "neither FLOAT nor FLOAT16", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(&onnxpb.ModelProto{
				OpsetImport: imports(17),
				Graph: &onnxpb.GraphProto{
					Input:  []*onnxpb.ValueInfoProto{value("input_ids", onnxpb.TensorProto_INT64, dim("b"), dim("s"))},
					Output: []*onnxpb.ValueInfoProto{c.out},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			dir := tiny(t)
			put(t, dir, "onnx/model.onnx", string(b))
			m, err := Open(dir, Options{ONNX: true})
			if c.refused != "" {
				if !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got %v, want a refusal with %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if warned := strings.Join(m.Warnings, "\n"); !strings.Contains(warned, c.warned) || c.warned == "" && warned != "" {
				t.Errorf("warnings %q, want %q", warned, c.warned)
			}
		})
	}
}
