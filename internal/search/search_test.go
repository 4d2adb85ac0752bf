package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
)

const dim = 6

// writeParts makes shards in /out: part by part the vectors of its rows. Ids count
// through all parts, and the column text is kept where texts are asked for.
func writeParts(t *testing.T, fs vfs.FS, texts bool, parts ...[][]float32) {
	t.Helper()
	if err := fs.MkdirAll("/out", 0o755); err != nil {
		t.Fatal(err)
	}
	fields := []column.Field{{Name: "id", Node: parquet.Leaf(parquet.Int64Type)}}
	if texts {
		fields = append(fields, column.Field{Name: "text", Node: parquet.Optional(parquet.String())})
	}
	layout, err := shard.NewLayout(fields, true, false, shard.Meta{Tool: "test", Recipe: key.Recipe{Dims: dim}})
	if err != nil {
		t.Fatal(err)
	}
	id := 0
	for p, vectors := range parts {
		r := shard.Rows{FileNames: []string{"a.parquet", "b.parquet"}, Columns: column.NewSet(fields)}
		for i := range vectors {
			r.Docs = append(r.Docs, int32(i))
			r.File = append(r.File, int32(id%2))
			r.Row = append(r.Row, int64(1000+id))
			r.Keys = append(r.Keys, key.Key{byte(id), byte(id >> 8)})
			r.Columns.Leaves[0].AppendRow(parquet.Int64Value(int64(id)))
			if texts {
				r.Columns.Leaves[1].AppendRow(parquet.ByteArrayValue(fmt.Appendf(nil, "text %d", id)).Level(0, 1, 0))
			}
			id++
		}
		r.Fetch = func(docs []int32, dst []float32, nTokens []int32, truncated []bool) error {
			for i, d := range docs {
				copy(dst[i*dim:(i+1)*dim], vectors[d])
				nTokens[i] = 3
			}
			return nil
		}
		if err := layout.Write(fs, "/out", p, [32]byte{byte(p)}, r); err != nil {
			t.Fatal(err)
		}
	}
}

func randomVector(r *rand.Rand) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func TestTheNearestAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var parts [][][]float32
	var all [][]float32
	for _, n := range []int{200, 0, 1, 77} {
		var part [][]float32
		for range n {
			v := randomVector(random)
			if len(all) > 10 && random.IntN(4) == 0 { // the same text again: a tie
				v = all[random.IntN(10)]
			}
			part, all = append(part, v), append(all, v)
		}
		parts = append(parts, part)
	}
	all[5][0], all[5][1], all[5][2], all[5][3], all[5][4], all[5][5] = 0, 0, 0, 0, 0, 0 // no direction: cosine 0
	fs := vfs.NewMem()
	writeParts(t, fs, true, parts...)
	for _, top := range []int{1, 2, 10, len(all), len(all) + 5} {
		query := randomVector(random)
		if top == 10 {
			query = slices.Clone(all[3]) // one that has ties at the top
		}
		type scored struct {
			id     int
			cosine float64
		}
		var want []scored
		for id, v := range all {
			var product, a, b float64
			for i := range v {
				product += float64(v[i]) * float64(query[i])
				a += float64(v[i]) * float64(v[i])
				b += float64(query[i]) * float64(query[i])
			}
			c := 0.0
			if a > 0 {
				c = product / math.Sqrt(a) / math.Sqrt(b)
			}
			want = append(want, scored{id, math.Round(c*1e12) / 1e12})
		}
		slices.SortStableFunc(want, func(a, b scored) int { return cmp.Compare(b.cosine, a.cosine) })
		want = want[:min(top, len(want))]
		hits, err := Nearest(context.Background(), fs, "/out", query, top, "text")
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) != len(want) {
			t.Fatalf("top %d: %d hits, want %d", top, len(hits), len(want))
		}
		for i, h := range hits {
			w := want[i]
			if h.ID != fmt.Sprint(w.id) || math.Abs(h.Cosine-w.cosine) > 1e-9 {
				t.Fatalf("top %d: hit %d is id %s with %v, want %d with %v", top, i, h.ID, h.Cosine, w.id, w.cosine)
			}
			if h.File != []string{"a.parquet", "b.parquet"}[w.id%2] || h.Row != int64(1000+w.id) || h.Text == nil || *h.Text != fmt.Sprintf("text %d", w.id) {
				t.Fatalf("hit %d is described as %+v", i, h)
			}
		}
	}
}

func TestWithoutTextsAHitHasNone(t *testing.T) {
	fs := vfs.NewMem()
	writeParts(t, fs, false, [][]float32{{1, 0, 0, 0, 0, 0}})
	hits, err := Nearest(context.Background(), fs, "/out", []float32{1, 1, 0, 0, 0, 0}, 3, "text")
	if err != nil || len(hits) != 1 || hits[0].Text != nil || math.Abs(hits[0].Cosine-math.Sqrt(0.5)) > 1e-12 {
		t.Errorf("hits %+v, %v", hits, err)
	}
}

func TestWhatCannotBeSearched(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Nearest(context.Background(), fs, "/out", make([]float32, dim), 3, "text"); !fault.Is(err, fault.NoSuchFile) {
		t.Errorf("no shards: %v", err)
	}
	writeParts(t, fs, false, [][]float32{{1, 0, 0, 0, 0, 0}})
	_, err := Nearest(context.Background(), fs, "/out", make([]float32, dim+1), 3, "text")
	if !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "6 dimensions, the query has 7") {
		t.Errorf("another dimension: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Nearest(ctx, fs, "/out", make([]float32, dim), 3, "text"); !fault.Is(fault.Of(err), fault.Interrupted) {
		t.Errorf("interrupted: %v", err)
	}
}
