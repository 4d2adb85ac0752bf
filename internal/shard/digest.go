package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/key"
)

// SchemaBytes describes a shard's columns in a form that no other schema, dim
// or format version shares.
func (l *Layout) SchemaBytes() []byte { return l.describe }

// Digest is the shard digest of a window:
//
//	SHA-256( field(SchemaBytes) field(window digest) field(dead) leaf 0 … leaf n )
//
// dead holds the window's positions that are dead letters, ascending, as
// little-endian uint32; a leaf is every row's entries of one leaf column of ids
// and kept values, dead ones included, as column.Leaf.Digest writes them.
// Vectors, token counts and hashes follow from the window digest.
func (l *Layout) Digest(window [32]byte, dead []int32, cols *column.Set) [32]byte {
	h := sha256.New()
	var b []byte
	b = key.AppendField(b, l.describe)
	b = key.AppendField(b, window[:])
	b = binary.LittleEndian.AppendUint64(b, uint64(4*len(dead)))
	for _, d := range dead {
		b = binary.LittleEndian.AppendUint32(b, uint32(d))
	}
	h.Write(b)
	for i := range cols.Leaves {
		for row := range cols.Leaves[i].Rows() {
			cols.Leaves[i].Digest(h, row)
		}
	}
	var d [32]byte
	h.Sum(d[:0])
	return d
}

// describe writes what a reader of the file would call its schema.
func describe(root []parquet.Field, dim int) []byte {
	var b []byte
	text := func(s string) { b = key.AppendField(b, []byte(s)) }
	text(strconv.Itoa(FormatVersion))
	text(strconv.Itoa(dim))
	var walk func(name string, n parquet.Node)
	walk = func(name string, n parquet.Node) {
		text(name)
		switch {
		case n.Optional():
			text("optional")
		case n.Repeated():
			text("repeated")
		default:
			text("required")
		}
		text(n.Type().String())
		if n.Leaf() { // a decimal's name does not say how it is stored
			text(strconv.Itoa(int(n.Type().Kind())))
			text(strconv.Itoa(n.Type().Length()))
		}
		text(strconv.Itoa(len(n.Fields())))
		for _, f := range n.Fields() {
			walk(f.Name(), f)
		}
	}
	text(strconv.Itoa(len(root)))
	for _, f := range root {
		walk(f.Name(), f)
	}
	return b
}
