// Package search finds the vectors of a job's shards that are nearest to a given
// one, by comparing all of them: it is for looking at a result, not for serving.
// It guarantees the exact nearest, ties in corpus order.
package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/shard"
)

// Hit is one document and its cosine to the query.
type Hit struct {
	Cosine float64 `json:"cosine"`
	ID     string  `json:"id,omitempty"`
	File   string  `json:"file"`
	Row    int64   `json:"row"`
	Chunk  int32   `json:"chunk"`
	Text   *string `json:"text"` // nil where the shard does not hold it

	part string
	at   int64
}

// Nearest returns the top hits over all shards in out, nearest first. text is
// the column whose value is taken as the text, where the shards have it.
func Nearest(ctx context.Context, fs vfs.FS, out string, query []float32, top int, text string) ([]Hit, error) {
	parts, err := shard.List(fs, out)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, fault.New(fault.NoSuchFile, "there are no shards here yet").In(out).Hinting("run the job first")
	}
	length := norm(query)
	var hits []Hit
	for _, p := range parts {
		err := shard.Read(fs, p.Path, func(b shard.Batch) error {
			dim := len(b.Vectors) / max(1, len(b.Keys))
			if len(b.Keys) > 0 && dim != len(query) {
				return fault.New(fault.Usage, "its vectors have %d dimensions, the query has %d", dim, len(query)).In(p.Path).
					Hinting("the shard was made by another recipe: run its job again")
			}
			for i := range b.Keys {
				v := b.Vectors[i*dim : (i+1)*dim]
				h := Hit{Cosine: dot(v, query) / max(norm(v)*length, 1e-12), part: p.Path, at: b.First + int64(i)}
				hits = insert(hits, h, top)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range hits {
		if err := hits[i].describe(fs, text); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// insert keeps the nearest hits, sorted.
func insert(hits []Hit, h Hit, top int) []Hit {
	if len(hits) == top && h.Cosine <= hits[top-1].Cosine {
		return hits
	}
	at, _ := slices.BinarySearchFunc(hits, h, func(a, b Hit) int {
		// A later hit of the same cosine goes behind the earlier ones.
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), -1)
	})
	hits = slices.Insert(hits, at, h)
	return hits[:min(len(hits), top)]
}

// describe reads which document a hit is.
func (h *Hit) describe(fs vfs.FS, text string) error {
	r, err := shard.Open(fs, h.part)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if !r.HasText(text) {
		text = ""
	}
	row, err := r.Row(h.at, text)
	if err != nil {
		return err
	}
	h.ID, h.File, h.Row, h.Chunk = row.ID, row.File, row.Row, row.Chunk
	if text != "" {
		s := string(row.Text)
		h.Text = &s
	}
	return nil
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

func norm(a []float32) float64 { return math.Sqrt(dot(a, a)) }
