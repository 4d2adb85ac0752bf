package corpus

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesInCorpusOrder(t *testing.T) {
	dir := t.TempDir()
	at := func(p string) string { return filepath.Join(dir, p) }
	for i, p := range []string{"a/b/x.parquet", "a/b.parquet", "a/A.parquet", "a/z=1/y.parquet", "a/_no.parquet", "a/.no/x.parquet",
		"a/_no/x.parquet", "a/out/part-000000.parquet", "b/b.parquet", "b/c.parquet", "g/1/p.parquet", "g/2/p.parquet", "g/2/_p.parquet"} {
		writeFile(t, at(p), docs(i*10, 2))
	}
	must(t, os.WriteFile(at("a/notes.txt"), []byte("no Parquet"), 0o644))
	must(t, os.Symlink(at("g"), at("b/linked")))
	for _, c := range []struct {
		args  []string
		names []string
	}{
		{[]string{at("a")}, []string{"A.parquet", "b.parquet", "b/x.parquet", "z=1/y.parquet"}},
		{[]string{at("b"), at("a")}, []string{"1/b.parquet", "c.parquet", "linked/1/p.parquet", "linked/2/p.parquet", "A.parquet", "2/b.parquet", "b/x.parquet", "z=1/y.parquet"}},
		{[]string{at("a/b.parquet"), at("a/_no.parquet")}, []string{"b.parquet", "_no.parquet"}},
		{[]string{at("g/*/p.parquet")}, []string{"1/p.parquet", "2/p.parquet"}},
		{[]string{at("g/*")}, []string{"1/p.parquet", "2/p.parquet"}},
		{[]string{at("[ab]/b.parquet")}, []string{"a/b.parquet", "b/b.parquet"}},
	} {
		r := readCorpus(t, Options{Args: c.args, OutDir: at("a/out")})
		var names []string
		for _, f := range r.corpus.Files() {
			names = append(names, f.Name)
		}
		equal(t, fmt.Sprint(c.args), names, c.names)
		if want := 2 * len(c.names); len(r.texts) != want || r.rows != int64(want) || r.corpus.Rows() != int64(want) {
			t.Errorf("%v: %d texts, %d rows, %d announced, want %d", c.args, len(r.texts), r.rows, r.corpus.Rows(), want)
		}
	}
}

func TestArgumentErrors(t *testing.T) {
	dir := t.TempDir()
	a := writeFile(t, filepath.Join(dir, "in", "a.parquet"), docs(0, 3))
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, "in"), filepath.Join(dir, "same")))
	must(t, os.MkdirAll(filepath.Join(dir, "loop"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, "loop"), filepath.Join(dir, "loop", "again")))
	own := writeFile(t, filepath.Join(dir, "own.parquet"), docs(0, 3), parquet.KeyValueMetadata("localembed.shard_digest", "00"))
	for _, c := range []struct {
		args  []string
		class fault.Class
		file  string
		parts []string
	}{
		{nil, fault.Usage, "", nil},
		{[]string{dir + "/nothing"}, fault.NoSuchFile, dir + "/nothing", nil},
		{[]string{dir + "/empty"}, fault.NoSuchFile, dir + "/empty", []string{".parquet"}},
		{[]string{dir + "/*.csv"}, fault.NoSuchFile, dir + "/*.csv", nil},
		{[]string{dir + "/**/*.parquet"}, fault.Usage, dir + "/**/*.parquet", []string{"name the folder"}},
		{[]string{a, filepath.Join(dir, "in")}, fault.Usage, a, []string{"named twice"}},
		{[]string{a, filepath.Join(dir, "same")}, fault.Usage, filepath.Join(dir, "same", "a.parquet"), []string{"named twice", a}},
		{[]string{filepath.Join(dir, "loop")}, fault.Usage, filepath.Join(dir, "loop", "again"), []string{"back"}},
		{[]string{own}, fault.Usage, own, []string{"made by localembed"}},
	} {
		_, err := tryRead(Options{Args: c.args})
		wantError(t, err, c.class, c.file, c.parts...)
	}
}

func TestWindowsClose(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.parquet"), docs(0, 100), parquet.PageBufferSize(300))
	writeFile(t, filepath.Join(dir, "b.parquet"), docs(100, 1))
	writeFile(t, filepath.Join(dir, "c.parquet"), []doc{})
	writeFile(t, filepath.Join(dir, "d.parquet"), docs(101, 99), parquet.MaxRowsPerRowGroup(10))
	all := readCorpus(t, Options{Args: []string{dir}})
	var want []string
	for _, d := range docs(0, 200) {
		want = append(want, d.Text)
	}
	equal(t, "texts", all.texts, want)
	equal(t, "windows", all.sizes, []int{200})
	for _, docs := range []int{1, 7, 100, 199, 200, 201} {
		r := readCorpus(t, Options{Args: []string{dir}, WindowDocs: docs})
		equal(t, "texts", r.texts, want)
		for i, n := range r.sizes[:len(r.sizes)-1] {
			if n != docs {
				t.Errorf("window %d of %d documents has %d", i, docs, n)
			}
		}
	}
	for _, limit := range []int64{1, 50, 1000, 1001, 1 << 20} {
		r := readCorpus(t, Options{Args: []string{dir}, WindowBytes: limit})
		equal(t, "texts", r.texts, want)
		at := 0
		for i, n := range r.sizes {
			if n > 1 && r.bytes[i] > limit {
				t.Errorf("limit %d: window %d has %d bytes", limit, i, r.bytes[i])
			}
			at += n
			if at < len(want) && r.bytes[i]+int64(len(want[at]))+8 <= limit {
				t.Errorf("limit %d: window %d closed at %d bytes before a text of %d", limit, i, r.bytes[i], len(want[at]))
			}
		}
	}
	size := int64(len(want[0])+len(want[1])) + 2*8
	for limit, windows := range map[int64][]int{size - 1: {1, 1}, size: {2}} { // up to the last byte
		equal(t, "windows", readCorpus(t, Options{Args: []string{dir}, Limit: 2, WindowBytes: limit}).sizes, windows)
	}
	for _, limit := range []int64{1, 99, 100, 101, 150, 500} {
		r := readCorpus(t, Options{Args: []string{dir}, Limit: limit, WindowDocs: 40})
		n := min(limit, 200)
		equal(t, "texts", r.texts, want[:n])
		if r.rows != n || r.corpus.Rows() != n {
			t.Errorf("limit %d: %d rows, %d announced", limit, r.rows, r.corpus.Rows())
		}
	}
}

func TestFailures(t *testing.T) {
	type row struct {
		Text *[]byte `parquet:"text"`
	}
	long := bytes.Repeat([]byte("é"), KeptText)
	tooBig := bytes.Repeat([]byte("x"), MaxText+1)
	rows, want := []row{}, []Failure{}
	add := func(f Failure, texts ...[]byte) {
		for _, text := range texts {
			rows, want = append(rows, row{&text}), append(want, f)
		}
	}
	rows, want = append(rows, row{}), append(want, NullText)
	add(EmptyText, nil, []byte(" \t\r\n\u00a0\u3000\u2028"), []byte("\u200b\u200c\u200d\u2060\ufeff"))
	add(None, []byte("\x00"), []byte(" a "), []byte("\ufffd"), long)
	add(InvalidUTF8, []byte("\x85"), []byte("a\xa0\xa0"), []byte("\xed\xa0\x80"), append(slices.Clone(long), 0xff))
	add(TooBig, tooBig)
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), rows, parquet.Compression(&parquet.Uncompressed), parquet.DataPageStatistics(false))
	if f := judge(tooBig[:MaxText]); f != None {
		t.Errorf("the longest text is %s", f)
	}
	r := readCorpus(t, Options{Args: []string{path}})
	equal(t, "failures", r.failure, want)
	for i, row := range rows {
		text := ""
		if row.Text != nil {
			text = string(*row.Text)
		}
		if want[i] != None {
			text = text[:min(len(text), KeptText)]
		}
		if r.texts[i] != text {
			t.Errorf("row %d (%s) has %d bytes of text, want %d", i, want[i], len(r.texts[i]), len(text))
		}
	}
	back, err := r.corpus.Texts(context.Background(), r.refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		switch {
		case row.Text == nil && back[i] != nil:
			t.Errorf("row %d: a null reads back as %q", i, back[i])
		case row.Text != nil && want[i] == TooBig && len(back[i]) != KeptText:
			t.Errorf("row %d: reads back with %d bytes", i, len(back[i]))
		case row.Text != nil && want[i] != TooBig && (back[i] == nil || !bytes.Equal(back[i], *row.Text)):
			t.Errorf("row %d reads back with %d bytes, want %d", i, len(back[i]), len(*row.Text))
		}
	}
}

func TestChunks(t *testing.T) {
	type row struct {
		ID   string   `parquet:"id"`
		Text []string `parquet:"text,list"`
		Tags []string `parquet:"tags"`
	}
	var rows []row
	var texts, ids []string
	var refs []Ref
	dir := t.TempDir()
	for f := range 2 {
		rows = rows[:0]
		for i := range 60 {
			r := row{ID: fmt.Sprint("doc", i), Tags: []string{"a", fmt.Sprint(i)}}
			for j := range i % 5 {
				text := fmt.Sprintf("text %d %d %d", f, i, j)
				r.Text = append(r.Text, text)
				texts, ids, refs = append(texts, text), append(ids, r.ID), append(refs, Ref{int32(f), int64(i), int32(j)})
			}
			if i%5 == 0 {
				texts, ids, refs = append(texts, ""), append(ids, r.ID), append(refs, Ref{int32(f), int64(i), NoChunk})
			}
			rows = append(rows, r)
		}
		writeFile(t, filepath.Join(dir, fmt.Sprint(f, ".parquet")), rows, parquet.PageBufferSize(200), parquet.DataPageVersion(1+f), parquet.MaxRowsPerRowGroup(37))
	}
	for _, docs := range []int{0, 1, 3, 50} {
		r := readCorpus(t, Options{Args: []string{dir}, WindowDocs: docs, Keep: []string{"tags"}})
		equal(t, "texts", r.texts, texts)
		equal(t, "places", r.refs, refs)
		if !r.corpus.Chunked() || r.rows != 120 {
			t.Errorf("chunked %v, %d rows", r.corpus.Chunked(), r.rows)
		}
		for i, want := range ids {
			if got := r.columns[0][i][0].String(); got != want {
				t.Fatalf("document %d has the id %q, want %q", i, got, want)
			}
			if tags := r.columns[1][i]; len(tags) != 2 || tags[1].String() != strings.TrimPrefix(want, "doc") || tags[1].RepetitionLevel() != 1 {
				t.Fatalf("document %d has the tags %v", i, tags)
			}
		}
	}
	r := readCorpus(t, Options{Args: []string{dir}, Limit: 61})
	if last := r.refs[len(r.refs)-1]; r.rows != 61 || last != (Ref{1, 0, NoChunk}) {
		t.Errorf("the last of %d rows is %v", r.rows, last)
	}
	// Single texts, in any order, with places that are not there.
	asked := []Ref{{1, 4, 3}, {0, 59, 0}, {1, 4, 3}, {0, 3, 1}, {0, 3, 9}, {0, 3, 10}, {0, 4, 0}, {0, 59, 3}, {0, 5, NoChunk}, {1, 36, 0}, {1, 37, 1}}
	back, err := r.corpus.Texts(context.Background(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range asked {
		want := fmt.Sprintf("text %d %d %d", a.File, a.Row, a.Chunk)
		if a.Chunk < 0 || int64(a.Chunk) >= a.Row%5 {
			want = ""
		}
		if string(back[i]) != want {
			t.Errorf("%v reads back as %q, want %q", a, back[i], want)
		}
	}
}

// TestBareLists reads lists that are a repeated column without a list around it.
func TestBareLists(t *testing.T) {
	type row struct {
		Text []string `parquet:"text"`
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), []row{{[]string{"a", ""}}, {nil}, {[]string{"b"}}})
	r := readCorpus(t, Options{Args: []string{path}})
	equal(t, "texts", r.texts, []string{"a", "", "", "b"})
	equal(t, "failures", r.failure, []Failure{None, EmptyText, EmptyText, None})
	equal(t, "places", r.refs, []Ref{{0, 0, 0}, {0, 0, 1}, {0, 1, NoChunk}, {0, 2, 0}})
}

func TestTextsReadBack(t *testing.T) {
	dir := t.TempDir()
	for i, enc := range []string{"plain", "dict", "delta"} {
		rows := docs(i*1000, 1000)
		path := filepath.Join(dir, enc+".parquet")
		options := []parquet.WriterOption{parquet.PageBufferSize(500), parquet.MaxRowsPerRowGroup(300), parquet.DataPageVersion(1 + i%2)}
		switch enc {
		case "dict":
			options = append(options, parquet.DefaultEncoding(&parquet.RLEDictionary))
		case "delta":
			options = append(options, parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.DeltaByteArray))
		}
		writeFile(t, path, rows, options...)
	}
	r := readCorpus(t, Options{Args: []string{dir}})
	for _, step := range []int{1, 17, 299, 1001} {
		var asked []Ref
		var want []string
		for i := len(r.refs) - 1; i >= 0; i -= step {
			asked, want = append(asked, r.refs[i]), append(want, r.texts[i])
		}
		back, err := r.corpus.Texts(context.Background(), asked)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if string(back[i]) != want[i] {
				t.Fatalf("%v reads back as %q, want %q", asked[i], back[i], want[i])
			}
		}
	}
}

func TestChangedFile(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), docs(0, 10))
	c, err := Open(context.Background(), Options{Args: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	rows := docs(0, 10)
	rows[9].ID++
	before, _ := os.Stat(path)
	writeFile(t, path, rows)
	if after, _ := os.Stat(path); after.Size() != before.Size() {
		t.Fatal("the test needs a file of the same size")
	}
	var w Window
	for range 2 { // it stays an error, and is not taken for the end
		wantError(t, c.Next(context.Background(), &w), fault.IOError, path, "changed")
	}
}

func TestCancelled(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), docs(0, 10))
	ctx, cancel := context.WithCancel(context.Background())
	c, err := Open(ctx, Options{Args: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var w Window
	wantError(t, c.Next(ctx, &w), fault.Interrupted, "")
	wantError(t, c.Next(context.Background(), &w), fault.Interrupted, "")
}
