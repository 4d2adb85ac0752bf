package models

import "fmt"

// Graph is an ONNX model that maps the token ids of a batch to its vectors,
// [items, Dim] in fp32.
type Graph struct {
	Proto   []byte  // a ModelProto in wire format
	DataDir string  // the folder that its external data lies in, "" if it has none
	Inputs  []Input // each [items, length], row-major
	Output  string
	Dim     int
	Vocab   int // token ids are below it
}

// Input is one input of a graph.
type Input struct {
	Name  string
	Role  Role
	Int32 bool // its elements are int32 rather than int64
}

// Role is what an input is fed with.
type Role int

const (
	IDs       Role = iota // token ids; anything where Mask is 0
	Mask                  // 1 for a token, 0 for padding, which stands at the end
	Types                 // token types: 0 everywhere
	Positions             // 0, 1, 2 … along a text
)

// form is which of its graphs a model is asked for.
type form struct {
	masked bool
	half   bool // built graphs have weights and activations in fp16
	fused  bool // built graphs without a mask attend by ONNX Runtime's own operator
	tokens int  // of the longest text
}

// Graph makes the model's graph. With masked, the texts of a batch may have
// different lengths, and the graph has an input of the role Mask; without,
// they all have one length, and a built graph has no mask at all. Building
// takes a millisecond, since the weights stay in the folder's files.
func (m *Model) Graph(masked bool) (Graph, error) {
	g, err := m.graph.graph(m.head, form{masked: masked, half: m.Recipe.Precision == "fp16", fused: m.Fused, tokens: m.Recipe.MaxTokens})
	if err != nil {
		return Graph{}, err
	}
	g.Dim, g.Vocab = m.head.dims, m.VocabSize
	return g, nil
}

func (m *Model) warn(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}
