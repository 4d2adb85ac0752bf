package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// rope is what config.json says of rotary positions, in one of its spellings:
// rope_parameters since version 5 of transformers, one for all layers or one for
// each kind of layer, and rope_scaling before.
type rope struct {
	Theta   *float64 `json:"rope_theta"`
	Type    string   `json:"rope_type"`
	OldType string   `json:"type"`
	Part    *float64 `json:"partial_rotary_factor"`
}

// rope is the base of the rotary positions of layers of a kind, "" where all are
// of one, or what is not supported about them. old is how version 4 spelled the
// base, and otherwise its default.
func (c config) rope(kind string, old *float64, otherwise float64) (theta float64, wrong string) {
	theta = or(old, otherwise)
	for _, raw := range []json.RawMessage{c.Rope, c.RopeScaling} {
		if !given(raw) {
			continue
		}
		byKind := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &byKind); err != nil {
			return 0, "rope_parameters is no object"
		}
		switch {
		case kind != "" && given(byKind[kind]):
			raw = byKind[kind]
		case kind == "" && slices.ContainsFunc(slices.Collect(maps.Values(byKind)), isObject):
			return 0, "rope_parameters for each kind of layer are not supported here, only one for all"
		}
		var r rope
		if err := json.Unmarshal(raw, &r); err != nil {
			return 0, fmt.Sprintf("the rotary positions cannot be read: %v", err)
		}
		for _, t := range []string{r.Type, r.OldType} {
			if t != "" && t != "default" {
				return 0, fmt.Sprintf("rotary positions of the type %q are not supported, only default", t)
			}
		}
		if or(r.Part, 1) != 1 {
			return 0, fmt.Sprintf("partial_rotary_factor %g is not supported, only 1", *r.Part)
		}
		theta = or(r.Theta, theta)
	}
	if !(theta > 0) || math.IsInf(theta, 0) {
		return 0, fmt.Sprintf("rope_theta is %g", theta)
	}
	return theta, ""
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// turns are the cosines and sines by which rotary positions turn the halves of a
// head, [length or 1, size / 2] each.
type turns struct{ cos, sin string }

// turns of the positions of a text of so many tokens at most. They are computed for
// all of them, which is constant and so done once, when ONNX Runtime opens the
// graph, and cut to the length.
func (b *builder) turns(theta float64, size, tokens int, length string) turns {
	frequencies := make([]float32, size/2)
	for i := range frequencies {
		// In fp32, as the reference has them.
		exponent := float32(2*i) / float32(size)
		frequencies[i] = 1 / float32(math.Pow(theta, float64(exponent)))
	}
	at := b.op("Range", []string{b.scalarInt(0), b.scalarInt(int64(tokens)), b.scalarInt(1)})
	at = b.op("Reshape", []string{b.float32(at), b.ints(-1, 1)})
	angles := b.op("Mul", []string{at, b.floats(frequencies)})
	cut := func(kind string) string {
		return b.op("Slice", []string{b.narrow(b.op(kind, []string{angles})), b.ints(0), length, b.ints(0)})
	}
	return turns{cut("Cos"), cut("Sin")}
}

// only is the turns of one place.
func (t turns) only(b *builder, p place) turns {
	return turns{p.cut(b, t.cos, 0), p.cut(b, t.sin, 0)}
}

// turn turns heads [items, heads, length, size].
func (b *builder) turn(x string, t turns) string {
	one, two := b.halves(x)
	mul := func(x, y string) string { return b.op("Mul", []string{x, y}) }
	return b.op("Concat", []string{
		b.op("Sub", []string{mul(one, t.cos), mul(two, t.sin)}),
		b.op("Add", []string{mul(two, t.cos), mul(one, t.sin)}),
	}, attrInt("axis", -1))
}
