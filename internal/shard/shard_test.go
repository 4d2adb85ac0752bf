package shard

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/key"
)

// window is a made-up window: n documents with an int64 id of which every
// seventh is null and a kept string.
type window struct {
	layout  *Layout
	rows    Rows
	vectors []float32
	tokens  []int32
	cut     []bool
}

func testMeta(dim int) Meta {
	return Meta{Tool: "localembed 0.0-test", ONNXRuntime: "1.31.1", Device: "cpu",
		Recipe: key.Recipe{ModelDigest: "ab", Pooling: "mean", Normalize: true, MaxTokens: 256, Dims: dim, Precision: "fp32"}}
}

func newWindow(t testing.TB, n, dim int, chunked bool) *window {
	t.Helper()
	fields := []column.Field{
		{Name: "id", Node: parquet.Optional(parquet.Leaf(parquet.Int64Type))},
		{Name: "title", Node: parquet.Optional(parquet.String())},
	}
	l, err := NewLayout(fields, true, chunked, testMeta(dim))
	if err != nil {
		t.Fatal(err)
	}
	w := &window{layout: l}
	w.rows.FileNames = []string{"a.parquet", "sub/b.parquet"}
	w.rows.Columns = column.NewSet(fields)
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		w.rows.Docs = append(w.rows.Docs, int32(i))
		w.rows.File = append(w.rows.File, int32(i*2/max(n, 1)))
		w.rows.Row = append(w.rows.Row, int64(i))
		if chunked {
			w.rows.Chunk = append(w.rows.Chunk, int32(i%3))
		}
		w.rows.Keys = append(w.rows.Keys, key.NewHasher(l.meta.Recipe).Key(fmt.Append(nil, i/2)))
		id := parquet.Int64Value(int64(i)-3).Level(0, 1, 0)
		if i%7 == 6 {
			id = parquet.NullValue().Level(0, 0, 0)
		}
		w.rows.Columns.Leaves[0].AppendRow(id)
		w.rows.Columns.Leaves[1].AppendRow(parquet.ByteArrayValue(fmt.Appendf(nil, "title %d", i)).Level(0, 1, 0))
		for range dim {
			w.vectors = append(w.vectors, float32(rnd.NormFloat64()/20))
		}
		w.tokens = append(w.tokens, int32(rnd.IntN(256)+2))
		w.cut = append(w.cut, rnd.IntN(10) == 0)
	}
	if n > 1 && dim > 3 { // values that a careless float path changes
		copy(w.vectors, []float32{float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32, 1})
	}
	w.rows.Fetch = w.fetch
	return w
}

func (w *window) fetch(docs []int32, vectors []float32, nTokens []int32, truncated []bool) error {
	dim := w.layout.dim
	for i, d := range docs {
		copy(vectors[i*dim:(i+1)*dim], w.vectors[int(d)*dim:])
		nTokens[i], truncated[i] = w.tokens[d], w.cut[d]
	}
	return nil
}

// same checks that a batch is the window's documents from b.First on.
func (w *window) same(t testing.TB, b Batch) {
	t.Helper()
	dim := w.layout.dim
	for i := range b.Keys {
		d := int(w.rows.Docs[int(b.First)+i])
		if b.Keys[i] != w.rows.Keys[d] || b.NTokens[i] != w.tokens[d] || b.Truncated[i] != w.cut[d] {
			t.Fatalf("row %d: %v, %d, %v; want %v, %d, %v", int(b.First)+i,
				b.Keys[i], b.NTokens[i], b.Truncated[i], w.rows.Keys[d], w.tokens[d], w.cut[d])
		}
		for j := range dim {
			got, want := b.Vectors[i*dim+j], w.vectors[d*dim+j]
			if math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("row %d, float %d: %g, want %g", int(b.First)+i, j, got, want)
			}
		}
	}
}

func mustRead(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriteAndRead(t *testing.T) {
	for _, c := range []struct {
		n, dim, groups int
		chunked        bool
	}{
		{0, 8, 0, false}, {1, 8, 1, false}, {1, 1, 1, true}, {2999, 12, 3, true},
		{1023, 16, 1, false}, {1024, 16, 1, false}, {1025, 16, 2, false}, {3000, 17, 4, true},
	} {
		t.Run(fmt.Sprintf("%dx%d", c.n, c.dim), func(t *testing.T) {
			fs := vfs.NewMem()
			w := newWindow(t, c.n, c.dim, c.chunked)
			w.layout.group = 64 << 10
			digest := w.layout.Digest([32]byte{1, 2}, nil, w.rows.Columns)
			if err := w.layout.Write(fs, "", 3, digest, w.rows); err != nil {
				t.Fatal(err)
			}
			first := mustRead(t, fs, "part-000003.parquet")

			info, err := Footer(fs, "part-000003.parquet")
			if err != nil {
				t.Fatal(err)
			}
			want := Info{Bytes: int64(len(first)), Rows: int64(c.n), Dim: c.dim, Digest: digest, Meta: w.layout.meta}
			if info != want {
				t.Errorf("footer: %+v\nwant %+v", info, want)
			}
			rows := 0
			if err := Read(fs, "part-000003.parquet", func(b Batch) error {
				if int(b.First) != rows {
					t.Fatalf("a batch starts at row %d, want %d", b.First, rows)
				}
				rows += len(b.Keys)
				w.same(t, b)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if rows != c.n {
				t.Errorf("%d rows, want %d", rows, c.n)
			}
			r, err := Open(fs, "part-000003.parquet")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if n := len(r.parquet.RowGroups()); n != c.groups {
				t.Errorf("%d row groups, want %d", n, c.groups)
			}

			if err := w.layout.Write(fs, "", 3, digest, w.rows); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, mustRead(t, fs, "part-000003.parquet")) {
				t.Error("the same rows gave other bytes")
			}
		})
	}
}

// TestCores checks that the bytes do not depend on how many row groups are made
// at a time.
func TestCores(t *testing.T) {
	w := newWindow(t, 2500, 16, false)
	w.layout.group = 16 << 10
	var one []byte
	for _, procs := range []int{1, 8, 16} {
		old := runtime.GOMAXPROCS(procs)
		fs := vfs.NewMem()
		err := w.layout.Write(fs, "", 0, [32]byte{}, w.rows)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		b := mustRead(t, fs, Name(0))
		if one == nil {
			one = b
		}
		if !bytes.Equal(one, b) {
			t.Errorf("%d cores give other bytes than one", procs)
		}
		if err := Read(fs, Name(0), func(b Batch) error { w.same(t, b); return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriteSome leaves out documents, as dead letters are.
func TestWriteSome(t *testing.T) {
	fs := vfs.NewMem()
	w := newWindow(t, 500, 16, false)
	w.rows.Docs = slices.DeleteFunc(w.rows.Docs, func(d int32) bool { return d%3 == 0 })
	if err := w.layout.Write(fs, "", 0, [32]byte{}, w.rows); err != nil {
		t.Fatal(err)
	}
	if err := Read(fs, "part-000000.parquet", func(b Batch) error { w.same(t, b); return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestStatistics checks that no reader finds bounds, which it may skip rows by,
// where none were computed.
func TestStatistics(t *testing.T) {
	fs := vfs.NewMem()
	w := newWindow(t, 3000, 16, true)
	w.layout.group = 64 << 10
	if err := w.layout.Write(fs, "", 0, [32]byte{}, w.rows); err != nil {
		t.Fatal(err)
	}
	file := mustRead(t, fs, Name(0))
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	bounded := []string{"id", "row", "chunk", "n_tokens"}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			want := slices.Contains(bounded, c.MetaData.PathInSchema[0])
			s := c.MetaData.Statistics
			if got := len(s.MinValue) > 0 || len(s.MaxValue) > 0; got != want {
				t.Errorf("%v has bounds: %v", c.MetaData.PathInSchema, got)
			}
			if got := c.ColumnIndexLength > 0; got != want {
				t.Errorf("%v has a column index: %v", c.MetaData.PathInSchema, got)
			}
			if c.OffsetIndexLength == 0 {
				t.Errorf("%v has no offset index", c.MetaData.PathInSchema)
			}
		}
	}
	// The index that was moved is the one that was made: it bounds row exactly.
	for g, group := range f.RowGroups() {
		column := group.ColumnChunks()[2].(*parquet.FileColumnChunk)
		index, err := column.ColumnIndexFrom(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		first := int64(g * 1024)
		if from, to := index.MinValue(0).Int64(), index.MaxValue(index.NumPages()-1).Int64(); from != first || to != first+group.NumRows()-1 {
			t.Errorf("row group %d has rows %d to %d", g, from, to)
		}
	}
}

// Row groups are of 8 MiB, and of small windows an eighth of the shard, at least 1 MiB.
func TestRowGroups(t *testing.T) {
	w := newWindow(t, 1, 384, false)
	for rows, want := range map[int]int{100: 1, 682: 1, 683: 2, 8192: 8, 43_690: 9, 250_000: 46} {
		docs := make([]int32, rows)
		rest := Rows{Docs: docs, Columns: w.rows.Columns}
		if got := len(w.layout.rowGroups(rest)); got != want {
			t.Errorf("%d rows of 384 floats are in %d row groups, want %d", rows, got, want)
		}
	}
}
