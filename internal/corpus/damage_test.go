package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// damaged makes a good file of three row groups and changes its bytes.
func damaged(t testing.TB, change func([]byte) []byte) string {
	t.Helper()
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), docs(0, 300), parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Snappy))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDamagedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		class  fault.Class
		parts  []string
	}{
		"empty":          {func(b []byte) []byte { return nil }, fault.NotParquet, []string{"empty"}},
		"two bytes":      {func(b []byte) []byte { return b[:2] }, fault.NotParquet, nil},
		"magic only":     {func(b []byte) []byte { return b[:4] }, fault.TruncatedFile, nil},
		"csv":            {func(b []byte) []byte { return []byte("id,text\n1,a\n") }, fault.NotParquet, []string{"id,t"}},
		"half":           {func(b []byte) []byte { return b[:len(b)/2] }, fault.TruncatedFile, nil},
		"byte missing":   {func(b []byte) []byte { return b[:len(b)-1] }, fault.TruncatedFile, nil},
		"encrypted":      {func(b []byte) []byte { return append(append([]byte("PARE"), b[4:len(b)-4]...), "PARE"...) }, fault.EncryptedFile, nil},
		"long footer":    {func(b []byte) []byte { copy(b[len(b)-8:], "\xff\xff\xff\x7f"); return b }, fault.CorruptFile, []string{"footer"}},
		"footer of none": {func(b []byte) []byte { copy(b[len(b)-8:], "\x00\x00\x00\x00"); return b }, fault.CorruptFile, []string{"footer"}},
		"page":           {func(b []byte) []byte { copy(b[200:], "damage"); return b }, fault.CorruptFile, []string{"row group 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := damaged(t, c.change)
			_, err := tryRead(Options{Args: []string{path}})
			wantError(t, err, c.class, path, c.parts...)
		})
	}
}

// changeFooter decodes the footer, changes it and puts it back.
func changeFooter(t testing.TB, change func(*format.FileMetaData)) func([]byte) []byte {
	return func(b []byte) []byte {
		size := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
		start := len(b) - 8 - size
		var m format.FileMetaData
		if err := thrift.Unmarshal(&thrift.CompactProtocol{}, b[start:len(b)-8], &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		footer, err := thrift.Marshal(&thrift.CompactProtocol{}, &m)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b[:start:start], footer...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
		return append(b, magicPlain...)
	}
}

func TestFootersThatClaimTooMuch(t *testing.T) {
	text := func(m *format.FileMetaData, group int) *format.ColumnMetaData {
		return &m.RowGroups[group].Columns[1].MetaData
	}
	for name, c := range map[string]struct {
		change func(*format.FileMetaData)
		class  fault.Class
		parts  []string
	}{
		"5 GiB in a chunk": {func(m *format.FileMetaData) { text(m, 1).TotalUncompressedSize = 5 << 30 }, fault.CorruptFile, []string{"row group 1", `"text"`}},
		"2 GiB in a small chunk": {func(m *format.FileMetaData) { text(m, 2).TotalUncompressedSize = 2 << 30 },
			fault.CorruptFile, []string{"row group 2", `"text"`}},
		"a row more in the file":    {func(m *format.FileMetaData) { m.NumRows++ }, fault.CorruptFile, nil},
		"a row more in a group":     {func(m *format.FileMetaData) { m.NumRows++; m.RowGroups[1].NumRows++ }, fault.CorruptFile, []string{"row group 1"}},
		"a row more in all columns": {func(m *format.FileMetaData) { claimRow(m, 1) }, fault.CorruptFile, []string{"row group 1"}},
		"a row less in all columns": {func(m *format.FileMetaData) { claimRow(m, -1) }, fault.CorruptFile, []string{"row group 1"}},
		"a chunk past the file":     {func(m *format.FileMetaData) { text(m, 0).DataPageOffset = 1 << 40 }, fault.CorruptFile, []string{"row group 0"}},
		"a chunk of another column": {func(m *format.FileMetaData) { *text(m, 1) = m.RowGroups[1].Columns[0].MetaData }, fault.CorruptFile, []string{"row group 1"}},
		"a chunk of another type":   {func(m *format.FileMetaData) { text(m, 1).Type = format.Int64 }, fault.CorruptFile, []string{"row group 1", `"text"`}},
		"a chunk of another name":   {func(m *format.FileMetaData) { text(m, 1).PathInSchema = []string{"other"} }, fault.CorruptFile, []string{"row group 1", `"text"`}},
		"no known repetition":       {func(m *format.FileMetaData) { m.Schema[2].RepetitionType.V = 5 }, fault.CorruptFile, []string{`"text"`}},
		"ids of the Null type":      {func(m *format.FileMetaData) { m.Schema[1].LogicalType.Value = &format.NullType{} }, fault.CorruptFile, []string{"row group 0", `"id"`, "Null"}},
		"texts of the Null type":    {func(m *format.FileMetaData) { m.Schema[2].LogicalType.Value = &format.NullType{} }, fault.CorruptFile, []string{"row group 0", `"text"`, "Null"}},
		"values in another file":    {func(m *format.FileMetaData) { m.RowGroups[1].Columns[1].FilePath = "../b.parquet" }, fault.UnsupportedFile, []string{"row group 1", `"../b.parquet"`}},
		"LZO":                       {func(m *format.FileMetaData) { text(m, 1).Codec = format.LZO }, fault.UnsupportedFile, []string{"row group 1", "LZO"}},
		"made by localembed":        {func(m *format.FileMetaData) { m.KeyValueMetadata = []format.KeyValue{{Key: "localembed.recipe"}} }, fault.Usage, nil},
		"encrypted columns":         {func(m *format.FileMetaData) { m.EncryptionAlgorithm.Value = &format.AesGcmV1{} }, fault.EncryptedFile, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := damaged(t, changeFooter(t, c.change))
			_, err := tryRead(Options{Args: []string{path}})
			wantError(t, err, c.class, path, c.parts...)
		})
	}
}

// A column that a flipped bit makes required has its levels read as values: each id would be
// another row's, and the zero bytes left over look like padding.
func TestOptionalMadeRequired(t *testing.T) {
	type row struct {
		ID   *int64 `parquet:"id,optional"`
		Text string `parquet:"text"`
	}
	rows := make([]row, 50)
	for i := range rows {
		id := int64(i)
		rows[i] = row{&id, "a text"}
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), rows, parquet.DataPageVersion(1), parquet.Compression(&parquet.Uncompressed))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := changeFooter(t, func(m *format.FileMetaData) { m.Schema[1].RepetitionType.V = format.Required })(slices.Clone(data))
	if err := os.WriteFile(path, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = tryRead(Options{Args: []string{path}})
	wantError(t, err, fault.CorruptFile, path, "row group 0", "more values than its levels say")
}

// TestRowsOfLists gives footers whose row counts only the lists' own levels refute.
func TestRowsOfLists(t *testing.T) {
	type row struct {
		Text []string `parquet:"text,list"`
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "a.parquet"), []row{{[]string{"a", "b"}}, {[]string{"c"}}, {nil}})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for by, message := range map[int64]string{-1: "more rows", 1: "before its row group"} {
		bad := changeFooter(t, func(m *format.FileMetaData) {
			m.NumRows += by
			m.RowGroups[0].NumRows += by
		})(slices.Clone(good))
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := tryRead(Options{Args: []string{path}})
		wantError(t, err, fault.CorruptFile, path, "row group 0", message)
	}
}

func claimRow(m *format.FileMetaData, by int64) {
	m.NumRows += by
	m.RowGroups[1].NumRows += by
	for i := range m.RowGroups[1].Columns {
		m.RowGroups[1].Columns[i].MetaData.NumValues += by
	}
}

// TestFooterBombs gives footers that a believing decoder cannot survive.
func TestFooterBombs(t *testing.T) {
	deep := bytes.Repeat([]byte{0x1c}, 1<<20)                // a structure in a structure in …
	list := []byte{0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07} // a schema of 2 billion elements
	for name, footer := range map[string][]byte{"deep": deep, "long list": list} {
		b := append([]byte(magicPlain), footer...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
		path := filepath.Join(t.TempDir(), name+".parquet")
		if err := os.WriteFile(path, append(b, magicPlain...), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := tryRead(Options{Args: []string{path}})
		wantError(t, err, fault.CorruptFile, path, "footer")
	}
}

// FuzzFile reads mutated files: an error with a class and the file's name, or
// as many rows as the footer says; never a panic, a hang or much memory.
func FuzzFile(f *testing.F) {
	type row struct {
		ID   int64    `parquet:"id"`
		Text []string `parquet:"text,list,optional"`
		Tags []string `parquet:"tags,list"`
	}
	dir := f.TempDir()
	for i, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Zstd), parquet.Compression(&parquet.Lz4Raw)} {
		version := parquet.DataPageVersion(1 + i%2)
		flat := writeFile(f, filepath.Join(dir, "flat.parquet"), docs(0, 60), codec, version, parquet.PageBufferSize(300), parquet.MaxRowsPerRowGroup(40))
		lists := writeFile(f, filepath.Join(dir, "lists.parquet"), []row{{1, []string{"a", "b"}, []string{"x"}}, {2, nil, nil}, {3, []string{""}, nil}}, codec, version)
		for _, path := range []string{flat, lists} {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
			for at := 7; at < len(data); at += 97 {
				bad := slices.Clone(data)
				bad[at] ^= 0x41
				f.Add(bad)
			}
		}
	}
	dir = f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		path := filepath.Join(dir, "fuzz.parquet")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := tryRead(Options{Args: []string{path}, WindowDocs: 1000, Limit: 10000})
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 256<<20 {
			t.Errorf("reading %d bytes allocated %d", len(data), spent)
		}
		var e *fault.Error
		switch {
		case errors.As(err, &e):
			if e.File != path || e.Hint == "" || e.Class == fault.Internal {
				t.Errorf("%+v", e)
			}
		case err != nil && err != io.EOF:
			t.Errorf("an error without a class: %v", err)
		case r != nil && r.rows != r.corpus.Rows():
			t.Errorf("%d rows of %d", r.rows, r.corpus.Rows())
		}
	})
}
