package corpus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// writeFile writes rows as a Parquet file.
func writeFile[T any](t testing.TB, path string, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[T](f, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

type doc struct {
	ID   int64  `parquet:"id"`
	Text string `parquet:"text"`
}

// docs makes n rows with texts of different lengths.
func docs(from, n int) []doc {
	rows := make([]doc, n)
	for i := range rows {
		k := from + i
		rows[i] = doc{int64(k), fmt.Sprintf("text %d %s", k, strings.Repeat("word ", k%17))}
	}
	return rows
}

// read is everything that a corpus gives out, flattened over its windows.
type read struct {
	corpus  *Corpus
	texts   []string
	refs    []Ref
	names   []string // value of the file column
	failure []Failure
	columns [][][]parquet.Value // leaf, document, entries
	sizes   []int               // documents of each window
	bytes   []int64             // text and column bytes of each window
	rows    int64
}

func readCorpus(t testing.TB, opts Options) *read {
	t.Helper()
	r, err := tryRead(opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryRead(opts Options) (*read, error) {
	c, err := Open(context.Background(), opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := &read{corpus: c}
	var w Window
	for {
		err := c.Next(context.Background(), &w)
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if w.Index != len(r.sizes) {
			return nil, fmt.Errorf("window %d has index %d", len(r.sizes), w.Index)
		}
		r.sizes = append(r.sizes, w.Len())
		r.bytes = append(r.bytes, int64(len(w.Text.Data))+w.Columns.Bytes())
		r.rows += w.Rows
		if r.columns == nil {
			r.columns = make([][][]parquet.Value, len(w.Columns.Leaves))
		}
		for i := range w.Len() {
			r.texts = append(r.texts, string(w.Text.At(i)))
			r.failure = append(r.failure, w.Failure[i])
			r.names = append(r.names, c.Files()[w.File[i]].Name)
			ref := Ref{File: w.File[i], Row: w.Row[i]}
			if w.Chunk != nil {
				ref.Chunk = w.Chunk[i]
			}
			r.refs = append(r.refs, ref)
			for l := range w.Columns.Leaves {
				entries := w.Columns.Leaves[l].Row(nil, i, l)
				for e := range entries {
					entries[e] = entries[e].Clone()
				}
				r.columns[l] = append(r.columns[l], entries)
			}
		}
	}
}

// wantError checks class, file and parts of the message.
func wantError(t *testing.T, err error, class fault.Class, file string, parts ...string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an error of class %s", err, class)
	}
	if e.Class != class {
		t.Errorf("class %s, want %s: %v", e.Class, class, e)
	}
	if e.File != file {
		t.Errorf("file %q, want %q", e.File, file)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error()+e.Hint, p) {
			t.Errorf("%q does not contain %q", e.Error(), p)
		}
	}
	if e.Hint == "" {
		t.Errorf("no hint: %v", e)
	}
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}
