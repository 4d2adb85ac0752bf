package corpus

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// find is the column of that name: an exact top-level name wins, else a path
// through structs with dots between the names. Names are exact bytes.
func find(root *parquet.Column, name string) *parquet.Column {
	if c := root.Column(name); c != nil {
		return c
	}
	for _, c := range root.Columns() {
		rest, ok := strings.CutPrefix(name, c.Name()+".")
		if !ok || c.Leaf() || c.Repeated() || logical(c) != nil {
			continue
		}
		if found := find(c, rest); found != nil {
			return found
		}
	}
	return nil
}

// place is where one file has a wanted column: in a Parquet column, or in a
// k=v folder above it.
type place struct {
	at   *parquet.Column
	node *node
	hive *string // nil for a null partition
}

// found are the wanted columns of one file.
type found struct {
	text    *parquet.Column // leaf
	chunked bool            // text is a list's element
	fields  []place         // id first, if any, then kept columns
}

// locate finds the wanted columns in a file and checks their types.
func (w *wanted) locate(o *opened) (found, error) {
	var f found
	root := o.pq.Root()
	if err := w.locateText(&f, root); err != nil {
		return f, err
	}
	if err := o.checkLeaf(f.text); err != nil {
		return f, err
	}
	if w.id != "" {
		id, err := w.locateID(root)
		if err != nil {
			return f, err
		}
		f.fields = append(f.fields, id)
	}
	for _, name := range w.keep {
		c := place{at: root.Column(name)}
		switch value, ok := hiveValue(o.path, name); {
		case c.at != nil:
			c.node = copyNode(c.at, name)
		case ok:
			c.hive = value
			c.node = copyNode(parquet.Optional(parquet.String()), name)
		default:
			return f, fault.New(fault.NoSuchColumn, "there is no column %q to keep; the columns are %s", name, names(topLevel(root))).
				Hinting("--keep takes top-level columns and the k of k=v folders")
		}
		f.fields = append(f.fields, c)
	}
	for _, c := range f.fields {
		if c.at == nil {
			continue
		}
		for _, leaf := range leavesOf(c.at) {
			if err := o.checkLeaf(leaf); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

func (w *wanted) locateText(f *found, root *parquet.Column) error {
	c := find(root, w.text)
	if c == nil {
		return fault.New(fault.NoSuchColumn, "there is no column %q; %s", w.text, couldBe("hold text", textColumns(root, ""))).
			Hinting("name the column that holds the texts with --text")
	}
	leaf := c
	if c.Repeated() && c.Leaf() { // a list without a list around it
		f.chunked = true
	} else if element, ok := isList(c); ok && element.Leaf() {
		f.chunked = true
		for !leaf.Leaf() {
			leaf = leaf.Columns()[0]
		}
	}
	if !isText(leaf) && !isNull(leaf) || f.chunked && leaf.MaxRepetitionLevel() != 1 {
		return fault.New(fault.WrongType, "the text column %q is %s, which holds no text", w.text, typeName(c)).
			Hinting("%s", hintOf(couldBe("hold text", textColumns(root, "")), "--text"))
	}
	f.text = leaf
	return nil
}

func (w *wanted) locateID(root *parquet.Column) (place, error) {
	c := find(root, w.id)
	if c == nil {
		return place{}, fault.New(fault.NoSuchColumn, "there is no id column %q; %s", w.id, couldBe("be an id", idColumns(root, ""))).
			Hinting("name a column with --id, or leave it away: rows are known by file and row number")
	}
	if !isID(c) || c.Repeated() {
		return place{}, fault.New(fault.WrongType, "the id column %q is %s; an id is an integer, a string, a uuid or binary", w.id, typeName(c)).
			Hinting("%s", hintOf(couldBe("be an id", idColumns(root, "")), "--id"))
	}
	n := copyNode(c, w.id)
	n.optional = c.MaxDefinitionLevel() > 0 // a null struct has a null id
	return place{at: c, node: n}, nil
}

// hiveValue is the value of a k=v folder above the file; nil for a null one.
func hiveValue(path, name string) (value *string, ok bool) {
	for _, part := range strings.Split(filepath.ToSlash(filepath.Dir(path)), "/") {
		k, v, isPair := strings.Cut(part, "=")
		if !isPair || unescape(k) != name {
			continue
		}
		value, ok = nil, true
		if v != "__HIVE_DEFAULT_PARTITION__" {
			s := unescape(v)
			value = &s
		}
	}
	return value, ok
}

// unescape undoes the %XX that writers use for characters a folder cannot have.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

func leavesOf(c *parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return []*parquet.Column{c}
	}
	var all []*parquet.Column
	for _, child := range c.Columns() {
		all = append(all, leavesOf(child)...)
	}
	return all
}

func textColumns(n *parquet.Column, path string) []string {
	return columns(n, path, func(c *parquet.Column) bool {
		if element, ok := isList(c); ok {
			return isText(element)
		}
		return isText(c)
	})
}

func idColumns(n *parquet.Column, path string) []string {
	return columns(n, path, func(c *parquet.Column) bool { return isID(c) && !isNull(c) && !c.Repeated() })
}

// columns are the names of the columns that fit, those inside structs with dots.
func columns(n *parquet.Column, path string, fits func(*parquet.Column) bool) []string {
	var all []string
	for _, c := range n.Columns() {
		switch {
		case fits(c):
			all = append(all, path+c.Name())
		case !c.Leaf() && !c.Repeated() && logical(c) == nil:
			all = append(all, columns(c, path+c.Name()+".", fits)...)
		}
	}
	return all
}

func topLevel(root *parquet.Column) []string {
	var all []string
	for _, c := range root.Columns() {
		all = append(all, c.Name())
	}
	return all
}

func couldBe(what string, all []string) string {
	if len(all) == 0 {
		return "no column could " + what
	}
	return "the columns that could " + what + " are " + names(all)
}

func hintOf(sentence, flag string) string {
	return sentence + ": name one with " + flag
}

// names quotes columns for a message; a file may have thousands.
func names(all []string) string {
	const most = 40
	quoted := []string{}
	for _, n := range all[:min(len(all), most)] {
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	s := strings.Join(quoted, ", ")
	if len(all) > most {
		s += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return s
}
