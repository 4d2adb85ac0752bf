package shard

import (
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// group is a Parquet group whose columns stand in the order given;
// parquet.Group sorts them by name.
type group struct {
	parquet.Node // what the group is but for its columns
	fields       []parquet.Field
}

func (g group) Fields() []parquet.Field     { return g.fields }
func (g group) ID() int                     { return 0 }
func (g group) Encoding() encoding.Encoding { return nil }
func (g group) Compression() compress.Codec { return nil }
func (g group) GoType() reflect.Type        { return reflect.TypeFor[struct{}]() }

// leaf is a Parquet column without the codec, encoding and field id that it
// had in the file it comes from.
type leaf struct{ parquet.Node }

func (leaf) ID() int                     { return 0 }
func (leaf) Encoding() encoding.Encoding { return nil }
func (leaf) Compression() compress.Codec { return nil }

// field is a node with its name.
type field struct {
	parquet.Node
	name string
}

func (f field) Name() string { return f.name }

// Value is asked for only where rows are Go values; ours are Parquet values.
func (f field) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}

// bare makes a node of a corpus file one that can be written here: the same
// columns, types and nesting, with our codec and encodings.
func bare(n parquet.Node) parquet.Node {
	if n.Leaf() {
		return leaf{n}
	}
	fields := make([]parquet.Field, 0, len(n.Fields()))
	for _, f := range n.Fields() {
		fields = append(fields, field{bare(f), f.Name()})
	}
	return group{n, fields}
}

// leaves lists the leaf columns below a node, in schema order, with the
// highest definition and repetition level each can have.
func leaves(n parquet.Node, rep, def byte) []leafInfo {
	switch {
	case n.Optional():
		def++
	case n.Repeated():
		def++
		rep++
	}
	if n.Leaf() {
		return []leafInfo{{n.Type(), rep, def}}
	}
	var all []leafInfo
	for _, f := range n.Fields() {
		all = append(all, leaves(f, rep, def)...)
	}
	return all
}

type leafInfo struct {
	typ            parquet.Type
	maxRep, maxDef byte
}
