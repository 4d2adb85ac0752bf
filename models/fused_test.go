package models

import (
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"localembed/models/onnxpb"
)

// Asked for ONNX Runtime's own operators, every kind of graph without a mask attends by
// them alone, and every other graph by plain ones.
func TestFusedOperators(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "zoo", "*", "config.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no model folders: %v", err)
	}
	turned := 0
	for _, file := range files {
		dir := filepath.Dir(file)
		m, err := Open(dir, Options{Tokenize: func([]byte, string) ([]uint32, error) { return []uint32{1, 2}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		e := m.graph.(*built)
		for _, form := range []struct{ fused, masked bool }{{true, false}, {true, true}, {false, false}} {
			m.Fused = form.fused
			g, err := m.Graph(form.masked)
			if err != nil {
				t.Fatal(err)
			}
			var pb onnxpb.ModelProto
			if err := proto.Unmarshal(g.Proto, &pb); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for n := range nodesOf(&pb) {
				count[n.GetOpType()]++
			}
			attend, turns := 0, 0
			if form.fused && !form.masked {
				attend = e.count
				if e.view != nil {
					turns = 2 * e.count
					turned++
				}
			}
			if count["MultiHeadAttention"] != attend || count["RotaryEmbedding"] != turns || (count["Softmax"] == 0) != (attend > 0) {
				t.Errorf("%s, %+v: %v", dir, form, count)
			}
		}
	}
	if turned < 5 {
		t.Errorf("%d folders have rotary positions", turned)
	}
}
