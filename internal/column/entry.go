package column

import "github.com/parquet-go/parquet-go"

// AppendEntry copies one entry: value is its little-endian bytes (one byte for
// a boolean) and is ignored for a null. An entry of repetition level 0 starts a
// row, any other belongs to the row that was appended last.
func (l *Leaf) AppendEntry(kind parquet.Kind, value []byte, null bool, def, rep int) {
	if null {
		kind, value = 0, nil
	}
	l.kind = append(l.kind, kind)
	l.null = append(l.null, null)
	l.def = append(l.def, byte(def))
	l.rep = append(l.rep, byte(rep))
	l.values.Append(value)
	if rep == 0 {
		l.rows = append(l.rows, int32(len(l.null)))
	} else {
		l.rows[len(l.rows)-1] = int32(len(l.null))
	}
}

// AppendFrom copies one row of another leaf.
func (l *Leaf) AppendFrom(src *Leaf, row int) {
	from, to := src.entries(row)
	l.kind = append(l.kind, src.kind[from:to]...)
	l.null = append(l.null, src.null[from:to]...)
	l.def = append(l.def, src.def[from:to]...)
	l.rep = append(l.rep, src.rep[from:to]...)
	for i := from; i < to; i++ {
		l.values.Append(src.values.At(i))
	}
	l.rows = append(l.rows, int32(len(l.null)))
}

// AppendFrom copies one row of a set of the same fields.
func (s *Set) AppendFrom(src *Set, row int) {
	for i := range s.Leaves {
		s.Leaves[i].AppendFrom(&src.Leaves[i], row)
	}
}
