package shard

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"localembed/internal/column"
)

// root is the repository's folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the working folder")
	return ""
}

// python runs testdata/readers.py under the project's own Python.
func python(t testing.TB, args ...string) []byte {
	t.Helper()
	exe := filepath.Join(root(t), ".cache/venv/bin/python")
	if _, err := os.Stat(exe); err != nil {
		t.Skip("the Python readers are not installed: make test installs them in .cache/venv")
	}
	cmd := exec.Command(exe, append([]string{"testdata/readers.py"}, args...)...)
	var stderr = new(tail)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("readers.py %v: %v\n%s", args, err, stderr.b)
	}
	return out
}

type tail struct{ b []byte }

func (s *tail) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	s.b = s.b[max(0, len(s.b)-4000):]
	return len(p), nil
}

func TestReadersVectors(t *testing.T) {
	for _, c := range []struct {
		n, dim  int
		chunked bool
	}{{0, 8, false}, {1, 1, false}, {777, 384, true}, {2500, 64, false}} {
		t.Run(fmt.Sprintf("%dx%d", c.n, c.dim), func(t *testing.T) {
			dir := t.TempDir()
			w := newWindow(t, c.n, c.dim, c.chunked)
			w.layout.group = 256 << 10
			if err := w.layout.Write(vfs.Default, dir, 0, [32]byte{}, w.rows); err != nil {
				t.Fatal(err)
			}
			raw := filepath.Join(dir, "raw")
			f, err := os.Create(raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := binary.Write(f, binary.LittleEndian, w.vectors); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			python(t, "vectors", filepath.Join(dir, Name(0)), fmt.Sprint(c.dim), raw)
		})
	}
}

// carry writes a shard that carries columns of a corpus file over, and checks
// that every reader sees in them what it sees in the corpus.
func carry(t *testing.T, corpus string, id string, keep ...string) {
	t.Helper()
	carryAs(t, true, corpus, id, keep...)
}

// carryAs is carry for columns that, all together, have an Arrow schema or not.
func carryAs(t *testing.T, arrow bool, corpus string, id string, keep ...string) {
	t.Helper()
	f, err := os.Open(corpus)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s is not there: these hazard files are not part of the repository", corpus)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, stat.Size())
	if err != nil {
		t.Fatal(err)
	}
	names := keep
	if id != "" {
		names = append([]string{id}, keep...)
	}
	var fields []column.Field
	var indexes []int
	for _, name := range names {
		c := file.Root().Column(name)
		if c == nil {
			t.Fatalf("%s has no column %s", corpus, name)
		}
		fields = append(fields, column.Field{Name: name, Node: c})
		var walk func(c *parquet.Column)
		walk = func(c *parquet.Column) {
			if c.Leaf() {
				indexes = append(indexes, c.Index())
			}
			for _, child := range c.Columns() {
				walk(child)
			}
		}
		walk(c)
	}
	const dim = 4
	l, err := NewLayout(fields, id != "", false, testMeta(dim))
	if err != nil {
		t.Fatal(err)
	}
	if (l.arrow != "") != arrow {
		t.Errorf("ARROW:schema is %q", l.arrow)
	}
	w := &window{layout: l}
	w.rows.FileNames = []string{filepath.Base(corpus)}
	w.rows.Columns = column.NewSet(fields)
	n := 0
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 1)
		for {
			k, err := rows.ReadRows(buf)
			if k == 1 {
				byColumn := map[int][]parquet.Value{}
				for _, v := range buf[0] {
					byColumn[v.Column()] = append(byColumn[v.Column()], v)
				}
				for i, index := range indexes {
					w.rows.Columns.Leaves[i].AppendRow(byColumn[index]...)
				}
				n++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		rows.Close()
	}
	for i := range n {
		w.rows.Docs = append(w.rows.Docs, int32(i))
		w.rows.File = append(w.rows.File, 0)
		w.rows.Row = append(w.rows.Row, int64(i))
		w.rows.Keys = append(w.rows.Keys, [32]byte{byte(i)})
		w.vectors = append(w.vectors, float32(i), 1, 2, 3)
		w.tokens = append(w.tokens, 3)
		w.cut = append(w.cut, false)
	}
	w.rows.Fetch = w.fetch
	dir := t.TempDir()
	if err := l.Write(vfs.Default, dir, 0, [32]byte{}, w.rows); err != nil {
		t.Fatal(err)
	}
	python(t, append([]string{"columns", filepath.Join(dir, Name(0)), corpus, fmt.Sprint(n)}, names...)...)
}

func TestReadersKeptColumns(t *testing.T) {
	t.Run("every type", func(t *testing.T) {
		corpus := filepath.Join(t.TempDir(), "corpus.parquet")
		names := strings.Fields(string(python(t, "corpus", corpus)))
		// The Parquet library does not know FLOAT16 and hands it on as two bytes.
		carry(t, corpus, "", slices.DeleteFunc(names, func(n string) bool { return n == "f16" })...)
	})
	t.Run("rare types", func(t *testing.T) {
		corpus := filepath.Join(t.TempDir(), "corpus.parquet")
		carry(t, corpus, "", rareTypes(t, corpus)...)
	})
	t.Run("lists from before LIST", func(t *testing.T) {
		corpus := filepath.Join(t.TempDir(), "corpus.parquet")
		f, err := os.Create(corpus)
		if err != nil {
			t.Fatal(err)
		}
		rows := []struct {
			Old []int32 `parquet:"old"`
			N   int32   `parquet:"n"`
		}{{[]int32{1, 2}, 0}, {nil, 1}, {[]int32{3}, 2}}
		if err := errors.Join(parquet.Write(f, rows), f.Close()); err != nil {
			t.Fatal(err)
		}
		carryAs(t, false, corpus, "", "old", "n")
	})
	t.Run("DuckDB", func(t *testing.T) {
		carry(t, filepath.Join(root(t), "../shared/hazards/passthrough.parquet"), "id",
			"ts", "tstz", "day", "tags", "st", "mp", "dec9", "dec38", "flag", "u8", "f32", "blob", "uid", "color", "nothing")
	})
	t.Run("ids", func(t *testing.T) {
		carry(t, filepath.Join(root(t), "../shared/hazards/ids.parquet"), "uuid", "i32", "i64", "str", "bin", "nullable", "dup", "all_null")
	})
}

// rareTypes writes a corpus of types that pyarrow cannot write. BSON, INTERVAL and
// decimals of over 38 digits are not among them: DuckDB or polars cannot read these.
func rareTypes(t *testing.T, path string) (names []string) {
	t.Helper()
	bytesLeaf, int32Leaf := parquet.Leaf(parquet.ByteArrayType), parquet.Leaf(parquet.Int32Type)
	schema := parquet.NewSchema("corpus", parquet.Group{
		"a_json":  parquet.Optional(parquet.JSON()),
		"b_enum":  parquet.Enum(),
		"c_uuid":  parquet.Optional(parquet.UUID()),
		"d_fixed": parquet.Leaf(parquet.FixedLenByteArrayType(12)),
		"e_int96": parquet.Optional(parquet.Leaf(parquet.Int96Type)),
		"f_bytes": bytesLeaf,
		"g_time":  parquet.TimeAdjusted(parquet.Microsecond, true),
		"h_dec":   parquet.Decimal(2, 20, parquet.FixedLenByteArrayType(9)),
		"i_date":  parquet.Date(),
		"j_int":   int32Leaf,
	})
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[any](f, schema)
	for i := range 50 {
		optional := func(col int, v parquet.Value) parquet.Value {
			if i%4 == 2 {
				return parquet.NullValue().Level(0, 0, col)
			}
			return v.Level(0, 1, col)
		}
		row := parquet.Row{
			optional(0, parquet.ByteArrayValue(fmt.Appendf(nil, `{"a": %d}`, i))),
			parquet.ByteArrayValue([]byte([]string{"red", "green"}[i%2])).Level(0, 0, 1),
			optional(2, parquet.FixedLenByteArrayValue(append(make([]byte, 15), byte(i)))),
			parquet.FixedLenByteArrayValue([]byte{byte(i), 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}).Level(0, 0, 3),
			optional(4, parquet.Int96Value(deprecated.Int96{uint32(i), 0, 2459000})),
			parquet.ByteArrayValue([]byte{0xff, byte(i)}).Level(0, 0, 5),
			parquet.Int64Value(int64(i)*1000).Level(0, 0, 6),
			parquet.FixedLenByteArrayValue(append(make([]byte, 8), byte(i))).Level(0, 0, 7),
			parquet.Int32Value(int32(i)).Level(0, 0, 8),
			parquet.Int32Value(int32(-i)).Level(0, 0, 9),
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range schema.Columns() {
		names = append(names, c[0])
	}
	return names
}

func TestReadersFailures(t *testing.T) {
	dir := t.TempDir()
	w := newWindow(t, 10, 4, true)
	failed := []Failed{
		{Doc: 1, Class: "null_text", Message: "the text is null"},
		{Doc: 6, Class: "invalid_utf8", Attempts: 5, Message: "x", Text: []byte("\xffab"), TextBytes: 70000},
		{Doc: 7, Class: "empty_text", Message: "y", Text: []byte{}},
	}
	if err := w.layout.WriteFailures(vfs.Default, dir, 0, [32]byte{1}, w.rows, failed); err != nil {
		t.Fatal(err)
	}
	var got map[string][]map[string]any
	if err := json.Unmarshal(python(t, "failures", FailuresPath(vfs.Default, dir, 0)), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"attempts":0,"chunk":1,"class":"null_text","file":"a.parquet","id":-2,"message":"the text is null","row":1,"text":null,"text_bytes":0}`,
		`{"attempts":5,"chunk":0,"class":"invalid_utf8","file":"sub/b.parquet","id":null,"message":"x","row":6,"text":"ff6162","text_bytes":70000}`,
		`{"attempts":0,"chunk":1,"class":"empty_text","file":"sub/b.parquet","id":4,"message":"y","row":7,"text":"","text_bytes":0}`,
	}
	for reader, rows := range got {
		var have []string
		for _, row := range rows {
			b, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, string(b))
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s sees\n%s\nwant\n%s", reader, have, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d readers, want 3", len(got))
	}

	for path, mode := range map[string]os.FileMode{
		filepath.Join(dir, FailuresDir):   0o700,
		FailuresPath(vfs.Default, dir, 0): 0o600,
	} {
		if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want %v", path, stat.Mode(), err, mode)
		}
	}
	if err := w.layout.WriteFailures(vfs.Default, dir, 0, [32]byte{1}, w.rows, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(FailuresPath(vfs.Default, dir, 0)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the dead letters of an earlier run are still there")
	}
}
