package corpus

import (
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// node is a schema node that stands for a column in all files. It keeps the
// order of fields, and forgets how the file it came from was encoded.
type node struct {
	name     string
	typ      parquet.Type
	id       int
	leaf     bool
	optional bool
	repeated bool
	fields   []*node
}

func copyNode(n parquet.Node, name string) *node {
	c := &node{name: name, typ: n.Type(), id: n.ID(), leaf: n.Leaf(), optional: n.Optional(), repeated: n.Repeated()}
	for _, f := range n.Fields() {
		c.fields = append(c.fields, copyNode(f, f.Name()))
	}
	return c
}

func (n *node) ID() int                           { return n.id }
func (n *node) Name() string                      { return n.name }
func (n *node) String() string                    { return typeName(n) }
func (n *node) Type() parquet.Type                { return n.typ }
func (n *node) Optional() bool                    { return n.optional }
func (n *node) Repeated() bool                    { return n.repeated }
func (n *node) Required() bool                    { return !n.optional && !n.repeated }
func (n *node) Leaf() bool                        { return n.leaf }
func (n *node) Encoding() encoding.Encoding       { return nil }
func (n *node) Compression() compress.Codec       { return nil }
func (n *node) Value(reflect.Value) reflect.Value { panic("corpus: a schema node has no Go value") }

func (n *node) Fields() []parquet.Field {
	fields := make([]parquet.Field, len(n.fields))
	for i, f := range n.fields {
		fields[i] = f
	}
	return fields
}

// GoType is what parquet-go makes of the same node.
func (n *node) GoType() reflect.Type {
	var plain parquet.Node
	if n.leaf {
		plain = parquet.Leaf(n.typ)
	} else {
		group := parquet.Group{}
		for _, f := range n.fields {
			group[f.name] = f
		}
		plain = group
	}
	switch {
	case n.repeated:
		plain = parquet.Repeated(plain)
	case n.optional:
		plain = parquet.Optional(plain)
	}
	return plain.GoType()
}

// leaves is the number of leaves at and below n.
func (n *node) leaves() int {
	if n.leaf {
		return 1
	}
	sum := 0
	for _, f := range n.fields {
		sum += f.leaves()
	}
	return sum
}

// unify is the type that holds the values of both nodes: integers widen, a
// required column becomes optional where another is, Null fits any type.
func unify(a, b *node) (*node, error) {
	switch {
	case a.repeated != b.repeated:
		return nil, fmt.Errorf("%s and %s", typeName(a), typeName(b))
	case isNull(b):
		u := *a
		u.optional = !u.repeated
		return &u, nil
	case isNull(a):
		u := *b
		u.optional = !u.repeated
		return &u, nil
	}
	u := *a
	u.optional = a.optional || b.optional
	if a.leaf && b.leaf {
		typ, ok := unifyTypes(a, b)
		if !ok {
			return nil, fmt.Errorf("%s and %s", typeName(a), typeName(b))
		}
		u.typ = typ
		return &u, nil
	}
	if a.leaf != b.leaf || len(a.fields) != len(b.fields) ||
		!reflect.DeepEqual(a.typ.LogicalType(), b.typ.LogicalType()) {
		return nil, fmt.Errorf("%s and %s", typeName(a), typeName(b))
	}
	// Writers disagree on the names inside lists and maps; a struct's names count.
	named := a.typ.LogicalType() == nil && !a.repeated
	u.fields = make([]*node, len(a.fields))
	for i := range a.fields {
		if named && a.fields[i].name != b.fields[i].name {
			return nil, fmt.Errorf("%s and %s", typeName(a), typeName(b))
		}
		f, err := unify(a.fields[i], b.fields[i])
		if err != nil {
			return nil, err
		}
		u.fields[i] = f
	}
	return &u, nil
}

func unifyTypes(a, b *node) (parquet.Type, bool) {
	if parquet.EqualTypes(a.typ, b.typ) {
		return a.typ, true
	}
	abits, asigned, aok := integer(a)
	bbits, bsigned, bok := integer(b)
	if !aok || !bok || asigned != bsigned {
		return nil, false
	}
	if abits >= bbits {
		return a.typ, true
	}
	return b.typ, true
}

// leafMap says how one leaf of a file becomes leaves of the corpus.
type leafMap struct {
	leaf    *parquet.Column
	targets []int  // leaves of the field in the corpus; several where a Null column stands for a struct
	levels  []byte // definition level in the file → definition level in the corpus
	kind    parquet.Kind
	signed  bool // whether a widened integer keeps its sign
}

// mapLeaves maps the leaves of a file's column to those of the unified node.
// first is the number of the unified node's first leaf.
func mapLeaves(f *parquet.Column, u *node, first int) []leafMap {
	maps, _ := appendLeaves(nil, f, u, first, []byte{0})
	return maps
}

func appendLeaves(maps []leafMap, f *parquet.Column, u *node, next int, levels []byte) ([]leafMap, int) {
	// levels[d] is the unified level of a value that the file defines up to
	// level d; its last entry is the level reached so far.
	reached := levels[len(levels)-1]
	if u.optional || u.repeated {
		reached++
	}
	levels = append([]byte(nil), levels...)
	if f.Optional() || f.Repeated() {
		levels = append(levels, reached)
	} else {
		levels[len(levels)-1] = reached
	}
	if f.Leaf() {
		m := leafMap{leaf: f, levels: levels}
		for range u.leaves() {
			m.targets = append(m.targets, next)
			next++
		}
		if u.leaf {
			m.kind = u.typ.Kind()
			_, m.signed, _ = integer(u)
		}
		return append(maps, m), next
	}
	for i, c := range f.Columns() {
		maps, next = appendLeaves(maps, c, u.fields[i], next, levels)
	}
	return maps, next
}
