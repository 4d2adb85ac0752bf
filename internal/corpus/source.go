package corpus

import (
	"encoding/binary"

	"localembed/internal/column"
	"localembed/internal/corpus/pages"
	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// source is where one file has the corpus's columns.
type source struct {
	text   textLeaf
	leaves []leafMap
	hive   []hiveLeaf
}

// textLeaf is the text column in one file.
type textLeaf struct {
	leaf  *parquet.Column
	max   int // definition level of a text
	list  bool
	empty int // in a list: definition level of an empty list
}

// hiveLeaf is a leaf whose value is in the file's path.
type hiveLeaf struct {
	target int
	value  *string
}

// locate finds the corpus's columns in a file that was checked.
func (c *Corpus) locate(o *opened) (source, error) {
	found, err := c.wanted.locate(o)
	if err != nil {
		return source{}, err
	}
	s := source{text: textLeaf{leaf: found.text, max: found.text.MaxDefinitionLevel(), list: found.chunked}}
	if s.text.list {
		s.text.empty = s.text.max - 1 // below a required element
		if found.text.Optional() {
			s.text.empty--
		}
	}
	first := 0
	for i, col := range found.fields {
		n := c.nodes[i]
		switch {
		case col.at == nil:
			s.hive = append(s.hive, hiveLeaf{target: first, value: col.hive})
		case len(col.at.Path()) > 1:
			s.leaves = append(s.leaves, flatLeaf(col.at, n, first))
		default:
			s.leaves = append(s.leaves, mapLeaves(col.at, n, first)...)
		}
		first += n.leaves()
	}
	return s, nil
}

// flatLeaf maps a leaf inside structs to a column of its own, null where a struct is.
func flatLeaf(f *parquet.Column, n *node, target int) leafMap {
	m := leafMap{leaf: f, targets: []int{target}, kind: n.typ.Kind(), levels: make([]byte, f.MaxDefinitionLevel()+1)}
	_, m.signed, _ = integer(n)
	if n.optional {
		m.levels[f.MaxDefinitionLevel()] = 1
	}
	return m
}

// valuesOfNothing is the error of a column of the Null type that has values: its type
// was damaged, or its values are no one's.
func valuesOfNothing(leaf *parquet.Column) error {
	return fault.New(fault.CorruptFile, "the column %q has the Null type, and values", pathOf(leaf)).Hinting(hintDamaged)
}

// copy appends the current entry to the corpus's leaves.
func (m *leafMap) copy(set *column.Set, p *pages.Column) error {
	level := int(m.levels[p.Def])
	if isNull(m.leaf) && !p.Null() {
		return valuesOfNothing(m.leaf)
	}
	if p.Null() {
		if p.Def > 0 && p.Def == len(m.levels)-1 {
			level = int(m.levels[p.Def-1])
		}
		for _, t := range m.targets {
			set.Leaves[t].AppendEntry(0, nil, true, level, p.Rep)
		}
		return nil
	}
	value, err := p.Value()
	if err != nil {
		return err
	}
	var wide [8]byte
	if m.kind == parquet.Int64 && len(value) == 4 {
		n := uint64(binary.LittleEndian.Uint32(value))
		if m.signed {
			n = uint64(int64(int32(n)))
		}
		binary.LittleEndian.PutUint64(wide[:], n)
		value = wide[:]
	}
	set.Leaves[m.targets[0]].AppendEntry(m.kind, value, false, level, p.Rep)
	return nil
}
