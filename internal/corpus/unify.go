package corpus

import (
	"localembed/internal/fault"
)

// tri is what is known of a property that some files leave open.
type tri int

const (
	open tri = iota
	yes
	no
)

// unifier finds the types that hold the values of all files.
type unifier struct {
	files   int
	first   []string // the file that each field's type comes from
	nodes   []*node
	chunked tri    // whether texts are list elements
	text    string // the file that chunked comes from
}

func (u *unifier) add(path string, w *wanted, f found) error {
	if err := u.addText(path, w, f); err != nil {
		return err
	}
	if u.files == 0 {
		for _, c := range f.fields {
			u.nodes = append(u.nodes, c.node)
			u.first = append(u.first, path)
		}
		u.files++
		return nil
	}
	u.files++
	for i, c := range f.fields {
		n, err := unify(u.nodes[i], c.node)
		if err != nil {
			return fault.New(fault.WrongType, "the column %q has another type than in %s: %s and %s",
				c.node.name, u.first[i], typeName(c.node), typeName(u.nodes[i])).In(path).Because(err).
				Hinting("write the files again with one type for it, or embed them in runs of their own")
		}
		if isNull(u.nodes[i]) {
			u.first[i] = path
		}
		n.name = u.nodes[i].name
		u.nodes[i] = n
	}
	return nil
}

func (u *unifier) addText(path string, w *wanted, f found) error {
	is := no
	switch {
	case f.chunked:
		is = yes
	case isNull(f.text):
		return nil
	}
	if u.chunked != open && u.chunked != is {
		return fault.New(fault.WrongType, "the text column %q is a list in one file and not in another: %s", w.text, u.text).In(path).
			Hinting("embed the files in runs of their own")
	}
	if u.chunked == open {
		u.chunked, u.text = is, path
	}
	return nil
}
