package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// hazard is one case of the shared hazard corpora.
type hazard struct {
	Case    string
	Input   string
	Options struct {
		Text, ID string
		Keep     []string
	}
	Expect struct {
		Outcome            string
		RowsIn             int64            `json:"rows_in"`
		RowsEmbedded       int64            `json:"rows_embedded"`
		UniqueTexts        int              `json:"unique_texts"`
		RowsDeadLettered   map[string]int64 `json:"rows_dead_lettered"`
		Class              string
		AlsoAcceptedClass  []string `json:"also_accepted_class"`
		File               string
		MessageMustContain []string `json:"message_must_contain"`
	}
	Files []hazardFile
}

type hazardFile struct {
	File         string
	RowsIn       int64   `json:"rows_in"`
	RowsEmbedded int64   `json:"rows_embedded"`
	RowsDead     int64   `json:"rows_dead_lettered"`
	Longest      int64   `json:"longest_text_bytes"`
	TextsSHA256  string  `json:"texts_sha256"`
	IDsSHA256    string  `json:"ids_sha256"`
	DeadRows     [][]any `json:"dead_rows"`
}

func TestHazards(t *testing.T) {
	root := filepath.Join(repoRoot(t), "..", "shared", "hazards")
	data, err := os.ReadFile(filepath.Join(root, "expected.json"))
	if err != nil {
		t.Skip("the hazard corpora are not here: ", err)
	}
	var all struct{ Cases []hazard }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, h := range all.Cases {
		t.Run(h.Case, func(t *testing.T) {
			input := filepath.Join(root, h.Input)
			for _, docs := range []int{0, 7} {
				got, err := drain(Options{Args: []string{input}, Text: h.Options.Text, ID: h.Options.ID,
					Keep: h.Options.Keep, WindowDocs: docs})
				if h.Expect.Outcome == "error" {
					h.checkError(t, err)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				h.checkCounts(t, got)
			}
		})
	}
}

func (h *hazard) checkError(t *testing.T, err error) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an error of class %s", err, h.Expect.Class)
	}
	accepted := append([]string{h.Expect.Class}, h.Expect.AlsoAcceptedClass...)
	if !contains(accepted, string(e.Class)) {
		t.Errorf("class %s, want one of %v: %v", e.Class, accepted, e)
	}
	if !strings.HasSuffix(e.File, h.Expect.File) {
		t.Errorf("file %q, want one that ends in %q", e.File, h.Expect.File)
	}
	for _, want := range h.Expect.MessageMustContain {
		if !strings.Contains(e.Message, want) {
			t.Errorf("message %q does not contain %q", e.Message, want)
		}
	}
	if e.Hint == "" {
		t.Errorf("no hint: %v", e)
	}
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}

func (h *hazard) checkCounts(t *testing.T, got *drained) {
	t.Helper()
	if got.rows != h.Expect.RowsIn || got.embedded != h.Expect.RowsEmbedded || len(got.unique) != h.Expect.UniqueTexts {
		t.Errorf("%d rows, %d embedded, %d unique; want %d, %d, %d", got.rows, got.embedded, len(got.unique),
			h.Expect.RowsIn, h.Expect.RowsEmbedded, h.Expect.UniqueTexts)
	}
	for class, want := range h.Expect.RowsDeadLettered {
		if got.dead[class] != want {
			t.Errorf("%d dead letters of class %s, want %d", got.dead[class], class, want)
		}
	}
	if len(got.files) != len(h.Files) {
		t.Fatalf("%d files, want %d", len(got.files), len(h.Files))
	}
	for _, want := range h.Files {
		have := findFile(got.files, want.File)
		if have == nil {
			t.Errorf("no file %s", want.File)
			continue
		}
		have.File = want.File
		if want.DeadRows == nil { // too many to be listed
			have.DeadRows = nil
		}
		if !reflect.DeepEqual(want, *have) {
			t.Errorf("got  %+v\nwant %+v", *have, want)
		}
	}
}

func findFile(files []hazardFile, path string) *hazardFile {
	for i := range files {
		if strings.HasSuffix(files[i].File, path) {
			return &files[i]
		}
	}
	return nil
}

// drained is what reading a corpus to its end gave.
type drained struct {
	corpus         *Corpus
	rows, embedded int64
	windows        int
	unique         map[string]bool
	dead           map[string]int64
	files          []hazardFile
}

func drain(opts Options) (*drained, error) {
	ctx := context.Background()
	c, err := Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	d := &drained{corpus: c, unique: map[string]bool{}, dead: map[string]int64{"total": 0}}
	texts, ids := make([]hash.Hash, len(c.Files())), make([]hash.Hash, len(c.Files()))
	for i, f := range c.Files() {
		texts[i], ids[i] = sha256.New(), sha256.New()
		d.files = append(d.files, hazardFile{File: f.Path, RowsIn: f.Rows, DeadRows: [][]any{}})
	}
	var w Window
	for {
		err := c.Next(ctx, &w)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		d.windows++
		d.rows += w.Rows
		for i := range w.Len() {
			f := &d.files[w.File[i]]
			if w.Failure[i] != None {
				f.RowsDead++
				d.dead["total"]++
				d.dead[w.Failure[i].String()]++
				place := []any{float64(w.Row[i])}
				if c.Chunked() && w.Chunk[i] >= 0 {
					place = append(place, float64(w.Chunk[i]))
				}
				f.DeadRows = append(f.DeadRows, append(place, w.Failure[i].String()))
				continue
			}
			text := w.Text.At(i)
			d.embedded++
			f.RowsEmbedded++
			f.Longest = max(f.Longest, w.TextBytes[i])
			d.unique[string(text)] = true
			writeField(texts[w.File[i]], text)
			if c.HasID() {
				writeField(ids[w.File[i]], []byte(idText(&w, i)))
			}
		}
	}
	for i := range d.files {
		d.files[i].TextsSHA256 = hex.EncodeToString(texts[i].Sum(nil))
		if c.HasID() {
			d.files[i].IDsSHA256 = hex.EncodeToString(ids[i].Sum(nil))
		}
	}
	return d, nil
}

func writeField(h hash.Hash, b []byte) {
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(b))))
	h.Write(b)
}

// idText is the id as the hazard corpora spell it.
func idText(w *Window, i int) string {
	return idOf(w.owner, w.Columns.Leaves[0].Row(nil, i, 0)[0])
}

func idOf(c *Corpus, v parquet.Value) string {
	node := c.Columns()[0].Node
	if v.IsNull() {
		return "\\N"
	}
	_, signed, isInt := integer(node)
	switch {
	case isInt && !signed:
		return fmt.Sprint(v.Uint64())
	case isInt && v.Kind() == parquet.Int32:
		return fmt.Sprint(v.Int32())
	case isInt:
		return fmt.Sprint(v.Int64())
	case v.Kind() == parquet.FixedLenByteArray && logical(node) != nil:
		h := hex.EncodeToString(v.ByteArray())
		return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
	case logical(node) == nil:
		return hex.EncodeToString(v.ByteArray())
	default:
		return string(v.ByteArray())
	}
}

func repoRoot(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
}
