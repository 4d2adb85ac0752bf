package shard

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/fault"
)

// TestWriteFails fails each file operation in turn: the old shard must be there
// as it was, or the new one whole, and nothing else.
func TestWriteFails(t *testing.T) {
	old, w := newWindow(t, 50, 8, false), newWindow(t, 700, 64, false)
	failed := []Failed{{Doc: 1, Class: "null_text"}}
	// Which state is right after a failure: the rename is the one step that counts.
	for _, c := range []struct {
		name  string
		path  string
		write func(fs vfs.FS, w *window) error
	}{
		{"shard", "out/" + Name(0), func(fs vfs.FS, w *window) error { return w.layout.Write(fs, "out", 0, [32]byte{}, w.rows) }},
		{"failures", "out/failures/" + Name(0), func(fs vfs.FS, w *window) error {
			return w.layout.WriteFailures(fs, "out", 0, [32]byte{1}, w.rows, failed)
		}},
		{"no failures", "out/failures/" + Name(0), func(fs vfs.FS, w *window) error {
			return w.layout.WriteFailures(fs, "out", 0, [32]byte{1}, w.rows, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := newOut(t)
			if err := c.write(want, w); err != nil {
				t.Fatal(err)
			}
			_, err := want.Stat(c.path)
			gone := err != nil
			for i := int32(0); ; i++ {
				mem := newOut(t)
				var err error
				if c.name == "shard" {
					err = c.write(mem, old)
				} else {
					err = old.layout.WriteFailures(mem, "out", 0, [32]byte{1}, old.rows, failed)
				}
				if err != nil {
					t.Fatal(err)
				}
				before := mustRead(t, mem, c.path)
				index := errorfs.OnIndex(i)
				err = c.write(errorfs.Wrap(mem, index), w)
				if index.Load() >= 0 { // not reached: nothing failed
					if err != nil {
						t.Fatal(err)
					}
					if i < 3 {
						t.Fatalf("only %d operations", i)
					}
					return
				}
				if err != nil && !errors.Is(err, errorfs.ErrInjected) {
					t.Fatalf("operation %d: %v", i, err)
				}
				names, lerr := mem.List(mem.PathDir(c.path))
				if lerr != nil {
					t.Fatal(lerr)
				}
				for _, name := range names {
					if name != Name(0) && name != FailuresDir {
						t.Errorf("operation %d left %q", i, name)
					}
				}
				if _, serr := mem.Stat(c.path); serr != nil {
					if !gone {
						t.Errorf("operation %d: the file is gone", i)
					}
					continue
				}
				after := mustRead(t, mem, c.path)
				isOld, isNew := bytes.Equal(after, before), !gone && bytes.Equal(after, mustRead(t, want, c.path))
				if !isOld && !isNew || err == nil && !isNew {
					t.Errorf("operation %d, error %v: old %v, new %v", i, err, isOld, isNew)
				}
			}
		})
	}
}

func newOut(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("out", 0o755); err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestReadFails(t *testing.T) {
	mem := vfs.NewMem()
	w := newWindow(t, 3000, 64, false)
	if err := w.layout.Write(mem, "", 0, [32]byte{}, w.rows); err != nil {
		t.Fatal(err)
	}
	for i := int32(0); ; i++ {
		index := errorfs.OnIndex(i)
		rows := 0
		err := Read(errorfs.Wrap(mem, index), Name(0), func(b Batch) error { rows += len(b.Keys); w.same(t, b); return nil })
		if index.Load() >= 0 {
			if err != nil || rows != 3000 || i < 5 {
				t.Fatalf("%d rows after %d operations: %v", rows, i, err)
			}
			return
		}
		// A disk that fails is not a file that is damaged.
		if rows == 3000 && err == nil {
			continue // the close
		}
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
}

// TestDamage changes bytes and cuts the file: whatever comes of it, it is one
// sentence of class corrupt_file, or a foreign or other-version file, or the
// right vectors; never a panic, never other values without an error.
func TestDamage(t *testing.T) {
	mem := vfs.NewMem()
	w := newWindow(t, 400, 16, false)
	if err := w.layout.Write(mem, "", 0, [32]byte{}, w.rows); err != nil {
		t.Fatal(err)
	}
	good := mustRead(t, mem, Name(0))
	damaged, tried := 0, 0
	try := func(t *testing.T, what string, data []byte) {
		t.Helper()
		tried++
		fs := vfs.NewMem()
		put(t, fs, "x", data)
		if _, err := Footer(fs, "x"); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		rows := 0
		err := Read(fs, "x", func(b Batch) error {
			rows += len(b.Keys)
			if rows > 400 {
				return errors.New("more rows than there are")
			}
			w.same(t, b)
			return nil
		})
		if err == nil && rows == 400 {
			return
		}
		damaged++
		if !fault.Is(err, fault.CorruptFile) && !fault.Is(err, fault.UnsupportedFile) {
			t.Errorf("%s: %d rows, %v", what, rows, err)
		}
	}
	for n := 0; n < len(good); n += 197 {
		try(t, fmt.Sprintf("first %d bytes", n), good[:n])
	}
	for i := 0; i < len(good); i += 37 {
		bad := bytes.Clone(good)
		bad[i] ^= []byte{0x01, 0xff}[i%2]
		try(t, fmt.Sprintf("byte %d", i), bad)
	}
	for i := len(good) - 3000; i < len(good); i += 3 { // the footer, which has no checksum
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		try(t, fmt.Sprintf("byte %d of the end", i), bad)
	}
	t.Logf("%d files, %d noticed, the others with the right vectors", tried, damaged)
	if damaged < 500 {
		t.Errorf("only %d of the damaged files were noticed", damaged)
	}
}

func put(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Clone(data)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFooterStates(t *testing.T) {
	fs := vfs.NewMem()
	w := newWindow(t, 10, 4, false)
	if err := w.layout.Write(fs, "", 0, [32]byte{}, w.rows); err != nil {
		t.Fatal(err)
	}
	good := mustRead(t, fs, Name(0))
	put(t, fs, "cut", good[:len(good)/2])
	put(t, fs, "empty", nil)
	version := bytes.Replace(good, []byte(metaFormat+"\x18\x011"), []byte(metaFormat+"\x18\x019"), 1)
	if bytes.Equal(version, good) {
		t.Fatal("the format version is not where it was thought to be")
	}
	put(t, fs, "version", version)
	var foreign bytes.Buffer
	if err := parquet.Write(&foreign, []struct{ A int }{{1}}); err != nil {
		t.Fatal(err)
	}
	put(t, fs, "foreign", foreign.Bytes())
	for path, want := range map[string]State{
		Name(0): Good, "cut": Damaged, "empty": Damaged, "version": OtherVersion, "foreign": Foreign, "none": Missing,
	} {
		info, err := Footer(fs, path)
		if err != nil || info.State != want || (info.Why == "") != (want == Good) {
			t.Errorf("%s: %v, %q, %v; want %v", path, info.State, info.Why, err, want)
		}
		if err := Read(fs, path, func(Batch) error { return nil }); (err == nil) != (want == Good) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		fs := vfs.NewMem()
		w := newWindow(t, 10, 4, false)
		w.vectors[4*7+3] = float32(bad)
		err := w.layout.Write(fs, "", 0, [32]byte{}, w.rows)
		if !fault.Is(err, fault.BadVectors) {
			t.Errorf("%v: %v", bad, err)
		}
		if names, _ := fs.List(""); len(names) != 0 {
			t.Errorf("%v was written in %v", bad, names)
		}
	}
}

// TestWrongValues gives a column values that do not fit it.
func TestWrongValues(t *testing.T) {
	for name, v := range map[string]parquet.Value{
		"narrow":     parquet.Int32Value(1).Level(0, 1, 0),
		"level":      parquet.Int64Value(1).Level(0, 0, 0),
		"null":       parquet.NullValue().Level(0, 1, 0),
		"repetition": parquet.Int64Value(1).Level(1, 1, 0),
	} {
		w := newWindow(t, 2, 4, false)
		w.rows.Columns.Leaves[0].Reset()
		w.rows.Columns.Leaves[0].AppendRow(v)
		w.rows.Columns.Leaves[0].AppendRow(v)
		if err := w.layout.Write(vfs.NewMem(), "", 0, [32]byte{}, w.rows); !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	text := func(names ...string) (fields []column.Field) {
		for _, n := range names {
			fields = append(fields, column.Field{Name: n, Node: parquet.String()})
		}
		return fields
	}
	for _, c := range []struct {
		fields         []column.Field
		hasID, chunked bool
		ok             bool
	}{
		{text(), false, false, true},
		{text("id", "text", "class"), true, false, true},
		{text("id", "id"), true, false, false},
		{text("a", "a"), false, false, false},
		{text("class"), true, false, false},
		{text("class"), false, false, true},
		{text("embedding"), false, false, false},
		{text("file"), true, false, false},
		{text("chunk"), false, true, false},
		{text("chunk"), false, false, true},
	} {
		_, err := NewLayout(c.fields, c.hasID, c.chunked, testMeta(4))
		if (err == nil) != c.ok || err != nil && !fault.Is(err, fault.Usage) {
			t.Errorf("%v, id %v, chunked %v: %v", c.fields, c.hasID, c.chunked, err)
		}
	}
}
