package corpus

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// TestKeptColumnsEqual compares ids and kept columns of any nesting, entry by
// entry, with what parquet-go reads from the same file.
func TestKeptColumnsEqual(t *testing.T) {
	type inner struct {
		A *int32            `parquet:"a,optional"`
		B []string          `parquet:"b,list"`
		M map[string]*int64 `parquet:"m"`
	}
	type row struct {
		ID   *uint64          `parquet:"id,optional"`
		Z    bool             `parquet:"z"`
		F    float32          `parquet:"f"`
		D    *float64         `parquet:"d,optional"`
		U    [16]byte         `parquet:"u,uuid"`
		Dec  int64            `parquet:"dec,decimal(2:18)"`
		Raw  []byte           `parquet:"raw"`
		When int64            `parquet:"when,timestamp(microsecond)"`
		S    *inner           `parquet:"s,optional"`
		L    []inner          `parquet:"l,list"`
		Bare []int64          `parquet:"bare"`
		Text string           `parquet:"text"`
		Tiny int8             `parquet:"tiny"`
		LL   [][]string       `parquet:"ll,list"`
		Map  map[string]inner `parquet:"map"`
	}
	var rows []row
	for i := range 400 {
		n, m, d := int32(i), int64(i)<<33, float64(i)/3
		id := uint64(1)<<63 + uint64(i)
		in := inner{A: &n, B: []string{"x", fmt.Sprint(i), ""}[:i%4%3], M: map[string]*int64{"k": &m, "n": nil}}
		r := row{Z: i%3 == 0, F: float32(i), Dec: m, Raw: []byte{0xff, byte(i)}, When: m, Text: fmt.Sprint("text ", i), Tiny: int8(i),
			Bare: []int64{m, 2, 3}[:i%4], LL: [][]string{{"a"}, nil, {"b", "c"}}[:i%4], Map: map[string]inner{}}
		if i%2 == 0 {
			r.ID, r.D, r.S = &id, &d, &in
		}
		for j := range i % 5 {
			r.L = append(r.L, in)
			r.Map[fmt.Sprint(j)] = inner{}
		}
		binary.BigEndian.PutUint64(r.U[:], uint64(i))
		rows = append(rows, r)
	}
	keep := []string{"ll", "text", "z", "f", "d", "u", "dec", "raw", "when", "s", "l", "bare", "tiny", "map"}
	for version := 1; version <= 2; version++ {
		path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), rows, parquet.PageBufferSize(600), parquet.DataPageVersion(version), parquet.MaxRowsPerRowGroup(150))
		checkAgainstParquetGo(t, path, append([]string{"id"}, keep...), readCorpus(t, Options{Args: []string{path}, Keep: keep, WindowDocs: 33}))
	}
}

func TestPassthroughHazard(t *testing.T) {
	path := filepath.Join(repoRoot(t), "..", "shared", "hazards", "passthrough.parquet")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the hazard corpora are not here: ", err)
	}
	keep := []string{"nothing", "ts", "tstz", "day", "tags", "st", "mp", "dec9", "dec38", "flag", "u8", "f32", "blob", "uid", "color"}
	checkAgainstParquetGo(t, path, append([]string{"id"}, keep...), readCorpus(t, Options{Args: []string{path}, Keep: keep}))
}

func checkAgainstParquetGo(t *testing.T, path string, fields []string, got *read) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	pq, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	leaf := 0
	for i, name := range fields {
		top := pq.Root().Column(name)
		if have := got.corpus.Columns()[i]; have.Name != name || !parquet.EqualNodes(have.Node, top) {
			t.Errorf("field %d is %s %s, want %s %s", i, have.Name, typeName(have.Node), name, typeName(top))
		}
		for _, l := range leavesOf(top) {
			want := rowsOfLeaf(t, pq, l)
			if len(want) != len(got.columns[leaf]) {
				t.Fatalf("%s: %d rows, want %d", pathOf(l), len(got.columns[leaf]), len(want))
			}
			for row := range want {
				if !equalEntries(got.columns[leaf][row], want[row]) {
					t.Fatalf("%s, row %d: %+v, want %+v", pathOf(l), row, got.columns[leaf][row], want[row])
				}
			}
			leaf++
		}
	}
	checkWritable(t, got)
}

// checkWritable writes each field as the corpus describes it and reads it back.
func checkWritable(t *testing.T, got *read) {
	t.Helper()
	leaf := 0
	for _, f := range got.corpus.Columns() {
		schema := parquet.NewSchema("test", parquet.Group{f.Name: f.Node})
		var buf bytes.Buffer
		w := parquet.NewWriter(&buf, schema)
		for i := range got.texts {
			var row parquet.Row
			for l := range f.Leaves() {
				for _, v := range got.columns[leaf+l][i] {
					row = append(row, v.Level(v.RepetitionLevel(), v.DefinitionLevel(), l))
				}
			}
			if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
				t.Fatalf("%s, row %d: %v", f.Name, i, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		pq, err := parquet.OpenFile(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leavesOf(pq.Root()) {
			for i, want := range rowsOfLeaf(t, pq, l) {
				if !equalEntries(got.columns[leaf][i], want) {
					t.Fatalf("%s, row %d: wrote %+v, read %+v", pathOf(l), i, got.columns[leaf][i], want)
				}
			}
			leaf++
		}
	}
}

func equalEntries(a, b []parquet.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].DefinitionLevel() != b[i].DefinitionLevel() || a[i].RepetitionLevel() != b[i].RepetitionLevel() || !parquet.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// rowsOfLeaf reads a leaf with parquet-go.
func rowsOfLeaf(t *testing.T, pq *parquet.File, leaf *parquet.Column) [][]parquet.Value {
	t.Helper()
	var rows [][]parquet.Value
	pages := leaf.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		values := make([]parquet.Value, page.NumValues())
		n, err := page.Values().ReadValues(values)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		for _, v := range values[:n] {
			if v.RepetitionLevel() == 0 {
				rows = append(rows, nil)
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], v.Clone())
		}
		parquet.Release(page)
	}
}

func TestTypesUnify(t *testing.T) {
	type one struct {
		ID   int32  `parquet:"id"`
		Text string `parquet:"text"`
		U    uint32 `parquet:"u"`
		S    string `parquet:"s"`
		In   struct {
			X int32 `parquet:"x"`
		} `parquet:"in"`
		L []string `parquet:"l,list"`
	}
	type two struct {
		ID   *int64  `parquet:"id,optional"`
		Text *string `parquet:"text,optional"`
		U    uint64  `parquet:"u"`
		S    *string `parquet:"s,optional"`
		In   *struct {
			X *int64 `parquet:"x,optional"`
		} `parquet:"in,optional"`
		L []string `parquet:"l,list"`
	}
	dir := t.TempDir()
	a := one{ID: -7, Text: "a", U: 1 << 31, S: "s", L: []string{"x", "y"}}
	a.In.X = -3
	writeFile(t, filepath.Join(dir, "a.parquet"), []one{a})
	text, id := "b", int64(1)<<40
	writeFile(t, filepath.Join(dir, "b.parquet"), []two{{Text: &text, U: 1 << 63}, {ID: &id}})
	null := parquet.Optional(parquet.Leaf(parquet.NullType))
	nulls := parquet.NewSchema("n", parquet.Group{"id": null, "text": null, "u": null, "s": null, "in": null, "l": null})
	writeNulls(t, filepath.Join(dir, "c.parquet"), nulls, 2)
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a", "c"}} {
		var args []string
		for _, o := range order {
			args = append(args, filepath.Join(dir, o+".parquet"))
		}
		r := readCorpus(t, Options{Args: args, Keep: []string{"u", "s", "in", "l"}})
		var types []string
		for _, f := range r.corpus.Columns() {
			types = append(types, fmt.Sprint(f.Name, " ", typeName(f.Node), " ", f.Node.Optional()))
		}
		equal(t, "types", types, []string{"id int64 true", "u uint64 true", "s string true", "in struct<x: int64> true", "l list<string> true"})
		lines := map[string][]string{}
		for i, name := range r.names {
			line := r.failure[i].String() + r.texts[i]
			for l := range r.columns {
				for _, v := range r.columns[l][i] {
					line += fmt.Sprintf(" %s/%d/%d", v, v.DefinitionLevel(), v.RepetitionLevel())
				}
			}
			lines[name] = append(lines[name], line)
		}
		equal(t, "a", lines["a.parquet"], []string{"a -7/1/0 2147483648/1/0 s/1/0 -3/2/0 x/2/0 y/2/1"})
		equal(t, "b", lines["b.parquet"], []string{
			"b <null>/0/0 -9223372036854775808/1/0 <null>/0/0 <null>/0/0 <null>/1/0",
			"null_text 1099511627776/1/0 0/1/0 <null>/0/0 <null>/0/0 <null>/1/0"})
		none := "null_text <null>/0/0 <null>/0/0 <null>/0/0 <null>/0/0 <null>/0/0"
		equal(t, "c", lines["c.parquet"], []string{none, none})
	}
}

func writeNulls(t *testing.T, path string, schema *parquet.Schema, n int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquet.NewWriter(f, schema)
	for range n {
		var row parquet.Row
		for c := range schema.Columns() {
			row = append(row, parquet.NullValue().Level(0, 0, c))
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTypesThatDoNotUnify(t *testing.T) {
	type text struct {
		ID   string `parquet:"id"`
		Text string `parquet:"text"`
		K    int32  `parquet:"k"`
	}
	type number struct {
		ID   int64  `parquet:"id"`
		Text string `parquet:"text"`
		K    uint32 `parquet:"k"`
	}
	type list struct {
		ID   string   `parquet:"id"`
		Text []string `parquet:"text,list"`
		K    int32    `parquet:"k"`
	}
	type missing struct {
		Text string `parquet:"text"`
		K    int32  `parquet:"k"`
	}
	dir := t.TempDir()
	a := writeFile(t, filepath.Join(dir, "text.parquet"), []text{{}})
	b := writeFile(t, filepath.Join(dir, "number.parquet"), []number{{}})
	c := writeFile(t, filepath.Join(dir, "list.parquet"), []list{{}})
	d := writeFile(t, filepath.Join(dir, "missing.parquet"), []missing{{}})
	for _, x := range []struct {
		opts  Options
		class fault.Class
		file  string
		parts []string
	}{
		{Options{Args: []string{a, b}}, fault.WrongType, b, []string{"id", "int64", "string", a}},
		{Options{Args: []string{b, a}}, fault.WrongType, a, []string{"id", "int64", "string", b}},
		{Options{Args: []string{a, c}}, fault.WrongType, c, []string{"text", "list", a}},
		{Options{Args: []string{a, d}}, fault.NoSuchColumn, d, []string{`"id"`}},
		{Options{Args: []string{a, b}, ID: "k"}, fault.WrongType, b, []string{"int32", "uint32", a}},
		{Options{Args: []string{a}, Keep: []string{"nope"}}, fault.NoSuchColumn, a, []string{"nope", `"k"`}},
		{Options{Args: []string{a}, Keep: []string{"k", "k"}}, fault.Usage, "", []string{"twice"}},
		{Options{Args: []string{a}, Keep: []string{"id"}}, fault.Usage, a, []string{"id"}},
		{Options{Args: []string{a}, ID: "k", Keep: []string{"k"}}, fault.Usage, "", []string{"twice"}},
		{Options{Args: []string{a}, Keep: []string{"embedding"}}, fault.Usage, "", []string{"embedding"}},
		{Options{Args: []string{a}, ID: "row"}, fault.Usage, "", []string{"row"}},
		{Options{Args: []string{a}, ID: "nope"}, fault.NoSuchColumn, a, []string{"nope", `"k"`}},
		{Options{Args: []string{a}, Text: "k"}, fault.WrongType, a, []string{"int32", `"text"`}},
	} {
		_, err := tryRead(x.opts)
		wantError(t, err, x.class, x.file, x.parts...)
	}
}

func TestHivePartitionsCanBeKept(t *testing.T) {
	dir := t.TempDir()
	type with struct {
		Text string `parquet:"text"`
		Lang string `parquet:"lang"`
	}
	writeFile(t, filepath.Join(dir, "lang=a%2Fb", "x.parquet"), []doc{{1, "one"}, {2, "two"}})
	writeFile(t, filepath.Join(dir, "lang=__HIVE_DEFAULT_PARTITION__", "x.parquet"), []doc{{3, "three"}})
	r := readCorpus(t, Options{Args: []string{dir}, Keep: []string{"lang"}, WindowBytes: 1})
	got := []string{}
	for _, v := range r.columns[1] {
		got = append(got, v[0].String())
	}
	equal(t, "lang", got, []string{"<null>", "a/b", "a/b"})
	// A column of the file's own wins.
	path := writeFile(t, filepath.Join(dir, "lang=x", "y.parquet"), []with{{"text", "own"}})
	if v := readCorpus(t, Options{Args: []string{path}, Keep: []string{"lang"}}).columns[0][0][0]; v.String() != "own" {
		t.Errorf("lang is %v", v)
	}
	_, err := tryRead(Options{Args: []string{filepath.Join(dir, "lang=x")}, Keep: []string{"country"}})
	wantError(t, err, fault.NoSuchColumn, path, "country")
}

func TestNestedNames(t *testing.T) {
	type row struct {
		Doc *struct {
			Key  int32   `parquet:"key"`
			Text *string `parquet:"text,optional"`
			Deep struct {
				Text string `parquet:"a.b"`
			} `parquet:"deep"`
		} `parquet:"doc,optional"`
		Flat string `parquet:"doc.text"`
	}
	var rows = make([]row, 3)
	text, key := "nested", int32(5)
	for i := range rows {
		rows[i].Flat = "top level"
	}
	rows[1].Doc = &struct {
		Key  int32   `parquet:"key"`
		Text *string `parquet:"text,optional"`
		Deep struct {
			Text string `parquet:"a.b"`
		} `parquet:"deep"`
	}{Text: &text, Key: key}
	rows[1].Doc.Deep.Text = "deep"
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), rows)
	equal(t, "top level wins", readCorpus(t, Options{Args: []string{path}, Text: "doc.text"}).texts, []string{"top level", "top level", "top level"})
	r := readCorpus(t, Options{Args: []string{path}, Text: "doc.deep.a.b", ID: "doc.key"})
	equal(t, "deep", r.texts, []string{"", "deep", ""})
	equal(t, "failures", r.failure, []Failure{NullText, None, NullText})
	ids := []string{}
	for _, v := range r.columns[0] {
		ids = append(ids, fmt.Sprintf("%s/%d", v[0], v[0].DefinitionLevel()))
	}
	equal(t, "ids", ids, []string{"<null>/0", "5/1", "<null>/0"})
	if f := r.corpus.Columns()[0]; f.Name != "doc.key" || !f.Node.Optional() || typeName(f.Node) != "int32" {
		t.Errorf("the id is %s %s", f.Name, typeName(f.Node))
	}
	_, err := Open(context.Background(), Options{Args: []string{path}, Text: "doc"})
	wantError(t, err, fault.WrongType, path, "struct<")
}
