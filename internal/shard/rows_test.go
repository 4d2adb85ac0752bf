package shard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
)

func TestRow(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		fs := vfs.NewMem()
		w := newWindow(t, 5000, 4, chunked)
		w.layout.group = 32 << 10 // some row groups
		if err := w.layout.Write(fs, "", 0, [32]byte{}, w.rows); err != nil {
			t.Fatal(err)
		}
		r, err := Open(fs, Name(0))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if !r.HasText("title") || r.HasText("id") || r.HasText("embedding") || r.HasText("none") {
			t.Error("title is the one text there is")
		}
		for _, i := range []int{0, 1, 6, 1999, 2000, 2047, 2048, 2049, 4999} {
			got, err := r.Row(int64(i), "title")
			if err != nil {
				t.Fatal(err)
			}
			want := Row{ID: fmt.Sprint(i - 3), File: w.rows.FileNames[w.rows.File[i]], Row: int64(i)}
			if i%7 == 6 {
				want.ID = ""
			}
			if chunked {
				want.Chunk = int32(i % 3)
			}
			if got.ID != want.ID || got.File != want.File || got.Row != want.Row || got.Chunk != want.Chunk || string(got.Text) != fmt.Sprintf("title %d", i) {
				t.Errorf("row %d, chunked %v: %+v, want %+v", i, chunked, got, want)
			}
		}
		if _, err := r.Row(5000, ""); err == nil {
			t.Error("row 5000 of 5000")
		}
		if got, err := r.Row(3, ""); err != nil || got.Text != nil {
			t.Errorf("a text that was not asked for: %q, %v", got.Text, err)
		}
	}
}

func TestIDText(t *testing.T) {
	uuid := []byte{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0}
	for want, c := range map[string]struct {
		v parquet.Value
		n parquet.Node
	}{
		"":                                     {parquet.NullValue(), parquet.String()},
		"-1":                                   {parquet.Int64Value(-1), parquet.Leaf(parquet.Int64Type)},
		"18446744073709551615":                 {parquet.Int64Value(-1), parquet.Uint(64)},
		"4294967295":                           {parquet.Int32Value(-1), parquet.Uint(32)},
		"-128":                                 {parquet.Int32Value(-128), parquet.Int(8)},
		"naïve":                                {parquet.ByteArrayValue([]byte("naïve")), parquet.String()},
		"ff00":                                 {parquet.ByteArrayValue([]byte{0xff, 0}), parquet.Leaf(parquet.ByteArrayType)},
		"123e4567-e89b-12d3-a456-426614174000": {parquet.FixedLenByteArrayValue(uuid), parquet.UUID()},
		"0102":                                 {parquet.FixedLenByteArrayValue([]byte{1, 2}), parquet.Leaf(parquet.FixedLenByteArrayType(2))},
	} {
		if got := idText(c.v, c.n.Type()); got != want {
			t.Errorf("%v: %q, want %q", c.v, got, want)
		}
	}
}

func TestListAndRemove(t *testing.T) {
	fs := vfs.NewMem()
	if parts, err := List(fs, "out"); err != nil || parts != nil {
		t.Fatalf("no folder: %v, %v", parts, err)
	}
	if err := fs.MkdirAll("out/failures", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"part-000010.parquet", "part-000002.parquet", "part-1000000.parquet", "failures/part-000002.parquet",
		"part-000003.parquet.tmp", "part-3.parquet", "part-0000004.parquet", "part-00000x.parquet", "report.json"} {
		put(t, fs, "out/"+name, nil)
	}
	indexes := func() (all []int) {
		t.Helper()
		parts, err := List(fs, "out")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if p.Path != Path(fs, "out", p.Index) {
				t.Errorf("part %d is at %s", p.Index, p.Path)
			}
			all = append(all, p.Index)
		}
		return all
	}
	if got := indexes(); !slices.Equal(got, []int{2, 10, 1000000}) {
		t.Errorf("%v", got)
	}
	if err := Remove(fs, "out", 2); err != nil {
		t.Fatal(err)
	}
	if err := Remove(fs, "out", 2); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if got := indexes(); !slices.Equal(got, []int{10, 1000000}) {
		t.Errorf("%v", got)
	}
	if _, err := fs.Stat("out/failures/part-000002.parquet"); err == nil {
		t.Error("the dead letters are still there")
	}
}

// TestDigest changes one thing at a time.
func TestDigest(t *testing.T) {
	seen := map[[32]byte]string{}
	add := func(what string, l *Layout, window [32]byte, dead []int32, cols *column.Set) {
		t.Helper()
		d := l.Digest(window, dead, cols)
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[d] = what
	}
	w := newWindow(t, 3, 4, false)
	add("a window", w.layout, [32]byte{}, nil, w.rows.Columns)
	add("another window", w.layout, [32]byte{1}, nil, w.rows.Columns)
	add("a dead row", w.layout, [32]byte{}, []int32{1}, w.rows.Columns)
	add("another dead row", w.layout, [32]byte{}, []int32{2}, w.rows.Columns)
	add("chunks", newWindow(t, 3, 4, true).layout, [32]byte{}, nil, w.rows.Columns)
	add("another dim", newWindow(t, 3, 5, false).layout, [32]byte{}, nil, w.rows.Columns)
	more := newWindow(t, 4, 4, false)
	add("a row more", w.layout, [32]byte{}, nil, more.rows.Columns)
	for what, node := range map[string]parquet.Node{
		"required": parquet.Leaf(parquet.Int64Type), "unsigned": parquet.Optional(parquet.Uint(64)),
		"decimal in 64 bits": parquet.Optional(parquet.Decimal(2, 9, parquet.Int64Type)),
		"decimal in 32 bits": parquet.Optional(parquet.Decimal(2, 9, parquet.Int32Type)),
	} {
		l, err := NewLayout([]column.Field{{Name: "id", Node: node}, w.layout.fields[1]}, true, false, w.layout.meta)
		if err != nil {
			t.Fatal(err)
		}
		add(what, l, [32]byte{}, nil, w.rows.Columns)
	}
	other := newWindow(t, 3, 4, false)
	other.rows.Columns.Leaves[1].Reset()
	for _, v := range []string{"title 0", "title 1", "title 9"} {
		other.rows.Columns.Leaves[1].AppendRow(parquet.ByteArrayValue([]byte(v)).Level(0, 1, 0))
	}
	add("another kept value", w.layout, [32]byte{}, nil, other.rows.Columns)
	if w.layout.Digest([32]byte{}, nil, w.rows.Columns) != newWindow(t, 3, 4, false).layout.Digest([32]byte{}, nil, newWindow(t, 3, 4, false).rows.Columns) {
		t.Error("the same window has another digest")
	}
}
