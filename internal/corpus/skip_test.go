package corpus

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// mixed makes a folder in which every other file is damaged or foreign, each in
// another way, and one with the good files alone.
func mixed(t *testing.T) (all, good string) {
	all, good = filepath.Join(t.TempDir(), "all"), filepath.Join(t.TempDir(), "good")
	for i, name := range []string{"b", "d", "f", "h"} {
		writeFile(t, filepath.Join(all, name+".parquet"), docs(1000*i, 70))
		writeFile(t, filepath.Join(good, name+".parquet"), docs(1000*i, 70))
	}
	bad := func(name string, change func([]byte) []byte) {
		path := writeFile(t, filepath.Join(all, name+".parquet"), docs(0, 300), parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Snappy))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bad("a", func(b []byte) []byte { return b[:len(b)/2] })
	bad("c", func(b []byte) []byte { return []byte("id,text\n") })
	bad("e", func(b []byte) []byte { return flipPage(t, b, 1) })
	bad("g", func(b []byte) []byte { return append([]byte("PARE"), b[4:]...) })
	return all, good
}

// flipPage damages a page of the texts in the middle of a row group.
func flipPage(t testing.TB, b []byte, group int) []byte {
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	m := f.Metadata().RowGroups[group].Columns[1].MetaData
	b[m.DataPageOffset+m.TotalCompressedSize/2] ^= 0x40
	return b
}

func TestBadFilesAreLeftOutWhole(t *testing.T) {
	all, good := mixed(t)
	want := readCorpus(t, Options{Args: []string{good}, WindowDocs: 50})
	got := readCorpus(t, Options{Args: []string{all}, WindowDocs: 50, SkipBad: true})
	equal(t, "texts", got.texts, want.texts)
	equal(t, "names", got.names, want.names)
	equal(t, "windows", got.sizes, want.sizes)
	if got.rows != want.rows || got.corpus.Rows() != want.rows {
		t.Errorf("%d rows read, %d announced at the end, want %d", got.rows, got.corpus.Rows(), want.rows)
	}
	var left []string
	for _, s := range got.corpus.Skipped() {
		left = append(left, filepath.Base(s.File.Path)+" "+string(s.Err.Class))
		if s.Err.File != s.File.Path || s.Err.Hint == "" {
			t.Errorf("%v has the file %q and the hint %q", s.Err, s.Err.File, s.Err.Hint)
		}
		if s.Err.Class == fault.CorruptFile && s.Err.RowGroup != 1 {
			t.Errorf("%v does not name row group 1", s.Err)
		}
	}
	equal(t, "left out", left, []string{"a.parquet truncated_file", "c.parquet not_parquet", "e.parquet corrupt_file", "g.parquet encrypted_file"})
}

// A file that is damaged far behind its start must not have given a row before.
func TestDamageShowsBeforeTheFirstRow(t *testing.T) {
	path := damaged(t, func(b []byte) []byte { return flipPage(t, b, 2) })
	if _, err := tryRead(Options{Args: []string{path}, WindowDocs: 10}); err == nil {
		t.Fatal("the damage is not found")
	}
	got := readCorpus(t, Options{Args: []string{path}, WindowDocs: 10, SkipBad: true})
	if len(got.texts) != 0 || got.corpus.Rows() != 0 || len(got.corpus.Skipped()) != 1 {
		t.Errorf("%d texts of a damaged file were given out", len(got.texts))
	}
}

// Files left out do not count into a limit. One whose damage lies behind the limit is
// left out too, or a higher limit would take back rows.
func TestLimitBehindAFileLeftOut(t *testing.T) {
	all, _ := mixed(t)
	got := readCorpus(t, Options{Args: []string{all}, SkipBad: true, Limit: 180})
	equal(t, "texts", got.texts[140:], readCorpus(t, Options{Args: []string{all}, SkipBad: true}).texts[140:180])
	path := damaged(t, func(b []byte) []byte { return flipPage(t, b, 2) })
	if got := readCorpus(t, Options{Args: []string{path}, SkipBad: true, Limit: 100}); got.rows != 0 {
		t.Errorf("%d rows are read in front of damage behind the limit", got.rows)
	}
}

// A file left out says nothing about the columns.
// damagedChunk claims more values for a column than its row group has rows.
func damagedChunk(m *format.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.NumValues++ }

func TestFilesLeftOutDecideNothing(t *testing.T) {
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "a.parquet"), docs(0, 300), parquet.MaxRowsPerRowGroup(100))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = changeFooter(t, damagedChunk)(data)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "b.parquet"), []struct {
		Text string `parquet:"text"`
	}{{"without an id"}})
	got := readCorpus(t, Options{Args: []string{dir}, SkipBad: true})
	if got.corpus.HasID() || len(got.texts) != 1 {
		t.Errorf("id %v, texts %q", got.corpus.HasID(), got.texts)
	}
}

func TestWhatIsNotLeftOut(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.parquet"), docs(0, 3))
	other := writeFile(t, filepath.Join(dir, "b.parquet"), []struct {
		ID   int64 `parquet:"id"`
		Text int64 `parquet:"text"`
	}{{1, 1}})
	_, err := tryRead(Options{Args: []string{dir}, SkipBad: true})
	wantError(t, err, fault.WrongType, other)
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", other); err != nil {
		t.Fatal(err)
	}
	_, err = tryRead(Options{Args: []string{dir}, SkipBad: true})
	wantError(t, err, fault.IOError, other)
}

func TestNothingIsLeft(t *testing.T) {
	path := damaged(t, func(b []byte) []byte { return b[:100] })
	_, err := tryRead(Options{Args: []string{path}, SkipBad: true})
	wantError(t, err, fault.TruncatedFile, path, "no file of the corpus can be read", "1 are left out")
}

// Reading a file through ends with the run, whose reason is told and not the file's.
func TestReadingThroughCanBeStopped(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), docs(0, 5000))
	c, err := Open(context.Background(), Options{Args: []string{path}, SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := fault.New(fault.Interrupted, "enough")
	cancel(why)
	if good, err := (&reader{c: c, end: 1, file: 0, columns: c.reader.columns}).sound(ctx); good || !errors.Is(err, why) || why.File != "" {
		t.Errorf("got %v, %v", good, err)
	}
	if err := c.reader.peek(ctx); !errors.Is(err, why) || why.File != "" {
		t.Errorf("got %v in %q", err, why.File)
	}
	c.reader.err = nil
	if len(c.Skipped()) != 0 {
		t.Error("the file counts as damaged")
	}
	if _, err := Open(ctx, Options{Args: []string{path}}); !errors.Is(err, why) {
		t.Errorf("opening: %v", err)
	}
	var w Window
	if err := c.Next(ctx, &w); !errors.Is(err, why) {
		t.Errorf("reading: %v", err)
	}
	if slices.Contains(skippable, fault.Interrupted) {
		t.Error("an interruption is taken for damage")
	}
}
