package models

import (
	"fmt"
	"math"
	"path/filepath"

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

// activations by their names in config.json.
var activations = map[string]func(n *nodes, x string) string{
	"gelu":              func(n *nodes, x string) string { return n.op("Gelu", []string{x}) },
	"gelu_new":          geluTanh,
	"gelu_pytorch_tanh": geluTanh,
	"relu":              func(n *nodes, x string) string { return n.op("Relu", []string{x}) },
}

func geluTanh(n *nodes, x string) string {
	return n.op("Gelu", []string{x}, attrString("approximate", "tanh"))
}

// bert is a BERT encoder whose weights lie in a safetensors file.
type bert struct {
	cfg   config
	t     *tensors
	bytes int64
}

// Names of the tensors.
const (
	embWords     = "embeddings.word_embeddings.weight"
	embPositions = "embeddings.position_embeddings.weight"
	embTypes     = "embeddings.token_type_embeddings.weight"
	embNorm      = "embeddings.LayerNorm"
)

func layerName(l int, name string) string { return fmt.Sprintf("encoder.layer.%d.%s", l, name) }

// bert checks that the folder holds a BERT that can be built: its
// configuration, and each tensor's presence, type and shape.
func (f *folder) bert(rel, sub string, c config) (*bert, error) {
	conf := filepath.Join(sub, "config.json")
	switch {
	case c.ModelType != "bert":
		return nil, f.refuse(conf, "the architecture %q is not supported", c.ModelType).
			Hinting("supported is bert; other models need a folder with onnx/model.onnx")
	case len(c.Quantization) > 0 && string(c.Quantization) != "null":
		return nil, f.refuse(conf, "the weights are quantized, which is not supported").
			Hinting("take the fp32 weights of the model")
	case c.PositionKind != "" && c.PositionKind != "absolute":
		return nil, f.refuse(conf, "position_embedding_type %q is not supported, only absolute", c.PositionKind)
	case c.Decoder || c.CrossAttn:
		return nil, f.refuse(conf, "a BERT that is a decoder is not supported")
	case activations[c.Activation] == nil:
		return nil, f.refuse(conf, "the activation %q (hidden_act) is not supported", c.Activation).
			Hinting("supported are gelu, gelu_new, gelu_pytorch_tanh and relu")
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"vocab_size", c.VocabSize}, {"hidden_size", c.HiddenSize}, {"num_hidden_layers", c.Layers},
		{"num_attention_heads", c.Heads}, {"intermediate_size", c.Intermediate}, {"max_position_embeddings", c.Positions},
	} {
		if n.value < 1 || n.value > 1<<24 {
			return nil, f.refuse(conf, "%s is %d", n.name, n.value)
		}
	}
	if c.HiddenSize%c.Heads != 0 {
		return nil, f.refuse(conf, "hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.Heads)
	}
	if c.Epsilon == nil {
		e := 1e-12
		c.Epsilon = &e
	}
	t, err := f.tensors(rel, embWords, "", "bert.")
	if err != nil {
		return nil, err
	}
	b := &bert{cfg: c, t: t, bytes: t.bytes}
	return b, b.check()
}

// check refuses weights that are not those of the configuration.
func (b *bert) check() error {
	h, m := int64(b.cfg.HiddenSize), int64(b.cfg.Intermediate)
	type want struct {
		name  string
		shape []int64
	}
	linear := func(name string, out, in int64) []want {
		return []want{{name + ".weight", []int64{out, in}}, {name + ".bias", []int64{out}}}
	}
	norm := func(name string) []want {
		return []want{{name + ".weight", []int64{h}}, {name + ".bias", []int64{h}}}
	}
	wants := []want{{embWords, []int64{int64(b.cfg.VocabSize), h}}, {embPositions, []int64{int64(b.cfg.Positions), h}}}
	if b.t.has(embTypes) {
		kinds := b.t.all[b.t.prefix+embTypes].Shape
		if len(kinds) == 0 || kinds[0] < 1 {
			kinds = []int64{1}
		}
		wants = append(wants, want{embTypes, []int64{kinds[0], h}})
	}
	wants = append(wants, norm(embNorm)...)
	for l := range b.cfg.Layers {
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			wants = append(wants, linear(layerName(l, name), h, h)...)
		}
		wants = append(wants, norm(layerName(l, "attention.output.LayerNorm"))...)
		wants = append(wants, linear(layerName(l, "intermediate.dense"), m, h)...)
		wants = append(wants, linear(layerName(l, "output.dense"), h, m)...)
		wants = append(wants, norm(layerName(l, "output.LayerNorm"))...)
		// The first layer that is not there ends the loop, whatever the count claims.
		for _, w := range wants {
			if err := b.t.check(w.name, w.shape...); err != nil {
				return err
			}
		}
		wants = wants[:0]
	}
	if extra := layerName(b.cfg.Layers, "attention.self.query.weight"); b.t.has(extra) {
		return b.t.folder.refuse(b.t.rel, "the weights have more layers than the %d of config.json", b.cfg.Layers).
			Hinting("take the weights that belong to config.json")
	}
	return nil
}

// flops per token of the linear layers.
func (b *bert) flops() float64 {
	h, m := float64(b.cfg.HiddenSize), float64(b.cfg.Intermediate)
	return float64(b.cfg.Layers) * 2 * (4*h*h + 2*h*m)
}

// graph builds the encoder with the head behind it.
//
// Tokens run through it as one matrix [items × length, hidden]; only attention
// sees single texts. The weights are used as they lie in the file, [out, in],
// by Gemm with transB, which ONNX Runtime packs once when it opens the graph.
func (b *bert) graph(h head, masked bool) (Graph, error) {
	n := newNodes("v")
	n.input("input_ids")
	inputs := []Input{{Name: "input_ids", Role: IDs}}
	mask, bias := "", ""
	if masked {
		mask = "attention_mask"
		n.input(mask)
		inputs = append(inputs, Input{Name: mask, Role: Mask})
		bias = b.bias(n, mask)
	}
	shape := n.op("Shape", []string{"input_ids"})
	items := n.op("Slice", []string{shape, n.ints(0), n.ints(1)})
	x := b.embed(n, shape)
	hidden := int64(b.cfg.HiddenSize)
	heads := int64(b.cfg.Heads)
	split := n.op("Concat", []string{items, n.ints(-1), n.ints(heads), n.ints(hidden / heads)}, attrInt("axis", 0))
	for l := range b.cfg.Layers {
		a := b.attention(n, l, x, split, bias)
		x = b.norm(n, layerName(l, "attention.output.LayerNorm"), n.op("Add", []string{a, x}))
		y := activations[b.cfg.Activation](n, b.linear(n, layerName(l, "intermediate.dense"), x, 1))
		y = b.linear(n, layerName(l, "output.dense"), y, 1)
		x = b.norm(n, layerName(l, "output.LayerNorm"), n.op("Add", []string{y, x}))
	}
	x = n.op("Reshape", []string{x, n.op("Concat", []string{items, n.ints(-1), n.ints(hidden)}, attrInt("axis", 0))})
	const output = "vector"
	h.add(n, x, mask, output)

	n.pb.Name = proto.String("bert")
	pb, err := proto.MarshalOptions{Deterministic: true}.Marshal(&onnxpb.ModelProto{
		IrVersion:    proto.Int64(irVersion),
		ProducerName: proto.String("localembed"),
		OpsetImport:  []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
		Graph:        &n.pb,
	})
	if err != nil {
		return Graph{}, fault.New(fault.Internal, "the graph cannot be written").In(b.t.folder.path(b.t.rel)).Because(err)
	}
	return Graph{Proto: pb, DataDir: b.t.dir, Inputs: inputs, Output: output}, nil
}

// embed sums the embeddings of words, positions and the token type 0, and
// normalizes the sum: [tokens, hidden].
func (b *bert) embed(n *nodes, shape string) string {
	words := n.op("Gather", []string{b.weight(n, embWords), "input_ids"})
	positions := b.weight(n, embPositions)
	if b.t.has(embTypes) {
		// Both are constant, so that ONNX Runtime sums them once, when it opens the graph.
		positions = n.op("Add", []string{positions, n.op("Gather", []string{b.weight(n, embTypes), n.ints(0)})})
	}
	length := n.op("Slice", []string{shape, n.ints(1), n.ints(2)})
	positions = n.op("Slice", []string{positions, n.ints(0), length, n.ints(0)})
	x := n.op("Add", []string{words, positions})
	x = n.op("Reshape", []string{x, n.ints(-1, int64(b.cfg.HiddenSize))})
	return b.norm(n, embNorm, x)
}

// attention of one layer with its output projection: [tokens, hidden].
func (b *bert) attention(n *nodes, l int, x, split, bias string) string {
	perHead := func(name string, scale float64, perm ...int64) string {
		y := b.linear(n, layerName(l, "attention.self."+name), x, scale)
		y = n.op("Reshape", []string{y, split})
		return n.op("Transpose", []string{y}, attrInts("perm", perm...))
	}
	// Scaling the queries inside their Gemm saves a pass over the scores.
	scale := 1 / math.Sqrt(float64(b.cfg.HiddenSize/b.cfg.Heads))
	q := perHead("query", scale, 0, 2, 1, 3)
	k := perHead("key", 1, 0, 2, 3, 1)
	v := perHead("value", 1, 0, 2, 1, 3)
	s := n.op("MatMul", []string{q, k})
	if bias != "" {
		s = n.op("Add", []string{s, bias})
	}
	s = n.op("Softmax", []string{s}, attrInt("axis", -1))
	y := n.op("MatMul", []string{s, v})
	y = n.op("Transpose", []string{y}, attrInts("perm", 0, 2, 1, 3))
	y = n.op("Reshape", []string{y, n.ints(-1, int64(b.cfg.HiddenSize))})
	return b.linear(n, layerName(l, "attention.output.dense"), y, 1)
}

// bias is what is added to the scores: 0 for a token, -1e9 for padding, whose
// weight is then 0 exactly: [items, 1, 1, length].
func (b *bert) bias(n *nodes, mask string) string {
	m := n.op("Sub", []string{n.float(1), n.float32(mask)})
	m = n.op("Mul", []string{m, n.float(-1e9)})
	return n.op("Reshape", []string{m, n.ints(0, 1, 1, -1)})
}

// linear is scale × (x × weightᵀ + bias).
func (b *bert) linear(n *nodes, name, x string, scale float64) string {
	attrs := []*onnxpb.AttributeProto{attrInt("transB", 1)}
	if scale != 1 {
		attrs = append(attrs, attrFloat("alpha", scale), attrFloat("beta", scale))
	}
	return n.op("Gemm", []string{x, b.weight(n, name+".weight"), b.weight(n, name+".bias")}, attrs...)
}

func (b *bert) norm(n *nodes, name, x string) string {
	return n.op("LayerNormalization", []string{x, b.weight(n, name+".weight"), b.weight(n, name+".bias")},
		attrInt("axis", -1), attrFloat("epsilon", *b.cfg.Epsilon))
}

// weight adds a tensor of the file to the graph.
func (b *bert) weight(n *nodes, name string) string {
	return n.tensor(b.t.initializer(name))
}
