package corpus

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// kind is a file that testdata/kinds.py wrote or read, with what pyarrow reads in it.
type kind struct {
	Text  string      `json:"text"`
	ID    string      `json:"id"`
	Class fault.Class `json:"class"` // of the error to expect
	Docs  []kindDoc   `json:"docs"`
}

// kindDoc is [row, chunk, kind, text, id].
type kindDoc struct {
	row   int64
	chunk int32
	kind  string
	text  []byte
	id    string
	raw   []byte // the id as the file has it
}

func (d *kindDoc) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&d.row, &d.chunk, &d.kind, &d.text, &d.id})
}

// failure is what the document has to come out as.
func (d *kindDoc) failure() Failure {
	switch d.kind {
	case "null":
		return NullText
	case "empty list":
		return EmptyText
	default:
		return judge(d.text)
	}
}

// manyKinds are the files in a folder; the test is skipped where there is no Python to write them.
func manyKinds(t *testing.T) (dir string, files map[string]kind) {
	t.Helper()
	python := filepath.Join(repoRoot(t), ".cache", "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("there is no Python with the writers: run make test, which makes one")
	}
	dir = t.TempDir()
	if err := oldLists(dir); err != nil {
		t.Fatal(err)
	}
	script, err := os.Open(filepath.Join("testdata", "kinds.py")) // read here, so that a change of it counts as one
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.Command(python, "-", dir)
	cmd.Stdin, cmd.Stderr = script, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &files); err != nil {
		t.Fatal(err)
	}
	return dir, files
}

// Every kind of file reads as pyarrow reads it, row by row, or is refused by its class.
func TestManyKinds(t *testing.T) {
	dir, files := manyKinds(t)
	if len(files) < 200 {
		t.Errorf("only %d files were written", len(files))
	}
	for name, want := range files {
		t.Run(strings.TrimSuffix(name, ".parquet"), func(t *testing.T) {
			opts := Options{Args: []string{filepath.Join(dir, name)}, Text: want.Text, ID: want.ID}
			got, err := readDocs(opts)
			if want.Class != "" {
				wantError(t, err, want.Class, opts.Args[0])
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want.Docs) {
				t.Fatalf("%d documents, pyarrow reads %d", len(got), len(want.Docs))
			}
			for i, w := range want.Docs {
				g := got[i]
				if strings.Contains(name, "bare") && w.chunk < 0 { // pyarrow has no empty list for it
					w.kind = g.kind
				}
				if g.row != w.row || g.chunk != w.chunk || g.id != w.id || g.failure() != w.failure() || string(g.text) != string(w.text) {
					t.Fatalf("document %d is %d/%d %v %q, id %s; pyarrow reads %d/%d %v %q, id %s", i,
						g.row, g.chunk, g.failure(), g.text, g.id, w.row, w.chunk, w.failure(), w.text, w.id)
				}
			}
		})
	}
}

// readDocs reads a corpus as documents.
func readDocs(opts Options) ([]kindDoc, error) {
	r, err := tryRead(opts)
	if err != nil {
		return nil, err
	}
	docs := make([]kindDoc, len(r.texts))
	for i, text := range r.texts {
		d := kindDoc{row: r.refs[i].Row, chunk: NoChunk, kind: "text", text: []byte(text)}
		if r.corpus.Chunked() {
			d.chunk = r.refs[i].Chunk
		}
		switch {
		case r.failure[i] == NullText:
			d.kind = "null"
		case r.failure[i] == EmptyText && d.chunk == NoChunk && r.corpus.Chunked():
			d.kind = "empty list"
		}
		if r.corpus.HasID() {
			d.id, d.raw = idOf(r.corpus, r.columns[0][i][0]), r.columns[0][i][0].Bytes()
		}
		docs[i] = d
	}
	return docs, nil
}

// listed is a group with the annotation of a list and the fields of an old one.
type listed struct{ parquet.Group }

func (listed) Type() parquet.Type { return parquet.List(parquet.String()).Type() }

// oldLists writes lists as old writers did, which pyarrow reads and does not write: go_*.parquet.
func oldLists(dir string) error {
	for name, c := range map[string]struct {
		text   parquet.Node
		levels []int // definition levels of a null list, an empty one, a null element and an element; -1 where there is none
	}{
		"two_levels":          {parquet.Optional(listed{parquet.Group{"array": parquet.Repeated(parquet.String())}}), []int{0, 1, -1, 2}},
		"two_levels_required": {listed{parquet.Group{"text_tuple": parquet.Repeated(parquet.String())}}, []int{-1, 0, -1, 1}},
		"bag": {parquet.Optional(listed{parquet.Group{"bag": parquet.Repeated(
			parquet.Group{"array_element": parquet.Optional(parquet.String())})}}), []int{0, 1, 2, 3}},
		"bag_required": {listed{parquet.Group{"bag": parquet.Repeated(parquet.Group{"array_element": parquet.String()})}}, []int{-1, 0, -1, 1}},
		"bare":         {parquet.Repeated(parquet.String()), []int{-1, 0, -1, 1}},
	} {
		f, err := os.Create(filepath.Join(dir, "go_"+name+".parquet"))
		if err != nil {
			return err
		}
		schema := parquet.NewSchema("schema", parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "text": c.text})
		w := parquet.NewWriter(f, schema, parquet.PageBufferSize(100), parquet.MaxRowsPerRowGroup(37))
		null := func(level int) parquet.Value { return parquet.Value{}.Level(0, level, 1) }
		for i := range 80 {
			row := parquet.Row{parquet.ValueOf(int64(i)).Level(0, 0, 0)}
			switch {
			case i%9 == 3 && c.levels[0] >= 0:
				row = append(row, null(c.levels[0]))
			case i%7 == 2:
				row = append(row, null(c.levels[1]))
			default:
				for k := range 1 + i%4 {
					v := parquet.ValueOf(fmt.Sprintf("%d/%d", i, k)).Level(min(k, 1), c.levels[3], 1)
					if (i+k)%6 == 0 && c.levels[2] >= 0 {
						v = parquet.Value{}.Level(min(k, 1), c.levels[2], 1)
					}
					row = append(row, v)
				}
			}
			if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
