package column

import (
	"encoding/binary"
	"hash"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// Field is one top-level column as it stands in the corpus: the node keeps its
// logical type, repetition and nesting.
type Field struct {
	Name string
	Node parquet.Node
}

// Leaves is the number of Parquet leaf columns below the field.
func (f Field) Leaves() int { return countLeaves(f.Node) }

func countLeaves(n parquet.Node) int {
	if n.Leaf() {
		return 1
	}
	sum := 0
	for _, c := range n.Fields() {
		sum += countLeaves(c)
	}
	return sum
}

// Set holds the values of some fields for consecutive documents: one Leaf per
// Parquet leaf column, in schema order, the leaves of a field side by side.
type Set struct {
	Fields []Field
	Leaves []Leaf
}

// NewSet makes an empty set.
func NewSet(fields []Field) *Set {
	n := 0
	for _, f := range fields {
		n += f.Leaves()
	}
	return &Set{Fields: fields, Leaves: make([]Leaf, n)}
}

// Reset drops all values and keeps the memory.
func (s *Set) Reset() {
	for i := range s.Leaves {
		s.Leaves[i].Reset()
	}
}

// Bytes is the size of the values held, which counts into a window's bytes.
func (s *Set) Bytes() int64 {
	sum := int64(0)
	for i := range s.Leaves {
		sum += s.Leaves[i].Bytes()
	}
	return sum
}

// Leaf holds the values of one Parquet leaf column. A row has one entry, or
// several in a repeated column; an entry is a value or a null, with its
// definition and repetition level.
type Leaf struct {
	kind   []parquet.Kind // of each entry's value; a null keeps the zero Kind
	null   []bool
	def    []byte
	rep    []byte
	values Arena   // little-endian bytes of each entry's value, empty for a null
	rows   []int32 // number of entries up to and with row i
}

// Reset drops all values and keeps the memory.
func (l *Leaf) Reset() {
	l.kind, l.null, l.def, l.rep, l.rows = l.kind[:0], l.null[:0], l.def[:0], l.rep[:0], l.rows[:0]
	l.values.Reset()
}

// Rows is the number of rows held.
func (l *Leaf) Rows() int { return len(l.rows) }

// Bytes is the size of the values held.
func (l *Leaf) Bytes() int64 { return int64(len(l.values.Data)) }

// RowBytes is the size of the values of one row.
func (l *Leaf) RowBytes(row int) int64 {
	from, to := l.entries(row)
	if from == to {
		return 0
	}
	start := int64(0)
	if from > 0 {
		start = l.values.Ends[from-1]
	}
	return l.values.Ends[to-1] - start
}

// AppendRow copies one row's entries: exactly one for a flat column, one or
// more for a column inside a list.
func (l *Leaf) AppendRow(entries ...parquet.Value) {
	for _, v := range entries {
		l.null = append(l.null, v.IsNull())
		l.def = append(l.def, byte(v.DefinitionLevel()))
		l.rep = append(l.rep, byte(v.RepetitionLevel()))
		if v.IsNull() {
			l.kind = append(l.kind, 0)
		} else {
			l.kind = append(l.kind, v.Kind())
			l.values.Data = appendValue(l.values.Data, v)
		}
		l.values.Ends = append(l.values.Ends, int64(len(l.values.Data)))
	}
	l.rows = append(l.rows, int32(len(l.null)))
}

func (l *Leaf) entries(row int) (from, to int) {
	if row > 0 {
		from = int(l.rows[row-1])
	}
	return from, int(l.rows[row])
}

// Row appends one row's entries to dst, for Parquet column columnIndex. Byte
// values alias the leaf's memory.
func (l *Leaf) Row(dst []parquet.Value, row, columnIndex int) []parquet.Value {
	from, to := l.entries(row)
	for i := from; i < to; i++ {
		v := parquet.NullValue()
		if !l.null[i] {
			v = value(l.kind[i], l.values.At(i))
		}
		dst = append(dst, v.Level(int(l.rep[i]), int(l.def[i]), columnIndex))
	}
	return dst
}

// Digest writes one row's entries into h in a form that no other row shares.
func (l *Leaf) Digest(h hash.Hash, row int) {
	from, to := l.entries(row)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(to-from))
	h.Write(b[:])
	for i := from; i < to; i++ {
		v := l.values.At(i)
		null := byte(0)
		if l.null[i] {
			null = 1
		}
		h.Write([]byte{null, l.rep[i], l.def[i]})
		binary.LittleEndian.PutUint64(b[:], uint64(len(v)))
		h.Write(b[:])
		h.Write(v)
	}
}

func appendValue(b []byte, v parquet.Value) []byte {
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return append(b, 1)
		}
		return append(b, 0)
	case parquet.Int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v.Int32()))
	case parquet.Int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v.Int64()))
	case parquet.Int96:
		for _, w := range v.Int96() {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	case parquet.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v.Float()))
	case parquet.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Double()))
	default:
		return append(b, v.ByteArray()...)
	}
}

func value(k parquet.Kind, b []byte) parquet.Value {
	switch k {
	case parquet.Boolean:
		return parquet.BooleanValue(b[0] != 0)
	case parquet.Int32:
		return parquet.Int32Value(int32(binary.LittleEndian.Uint32(b)))
	case parquet.Int64:
		return parquet.Int64Value(int64(binary.LittleEndian.Uint64(b)))
	case parquet.Int96:
		return parquet.Int96Value(deprecated.Int96{
			binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]),
		})
	case parquet.Float:
		return parquet.FloatValue(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case parquet.Double:
		return parquet.DoubleValue(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case parquet.FixedLenByteArray:
		return parquet.FixedLenByteArrayValue(b)
	default:
		return parquet.ByteArrayValue(b)
	}
}
