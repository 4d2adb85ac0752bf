package shard

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// What another program wrote into the vectors is found, although its checksums are right.
func TestCheckLooksAtEveryVector(t *testing.T) {
	type row struct {
		Embedding []float32 `parquet:"embedding,list"`
	}
	for name, c := range map[string]struct {
		vector    []float32
		normalize bool
		want      string
	}{
		"good":           {[]float32{0.6, 0.8}, true, ""},
		"NaN":            {[]float32{0.6, float32(math.NaN())}, false, "not finite"},
		"Inf":            {[]float32{float32(math.Inf(-1)), 0.8}, false, "not finite"},
		"too long":       {[]float32{0.6, 0.9}, true, "length 1.08"},
		"not normalized": {[]float32{0.6, 0.9}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := parquet.Write(&b, []row{{[]float32{1, 0}}, {c.vector}}); err != nil {
				t.Fatal(err)
			}
			f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
			if err != nil {
				t.Fatal(err)
			}
			l := &Layout{dim: 2}
			l.meta.Recipe.Normalize = c.normalize
			chunk := f.RowGroups()[0].ColumnChunks()[0].(*parquet.FileColumnChunk)
			err = (&check{layout: l, docs: []int32{0, 1}}).vectors(chunk, bytes.NewReader(b.Bytes()))
			var wrong *wrongRow
			switch {
			case c.want == "" && err != nil:
				t.Errorf("found %v", err)
			case c.want != "" && (!errors.As(err, &wrong) || wrong.row != 1 || !strings.Contains(wrong.why, c.want)):
				t.Errorf("found %v, want row 1 with %q", err, c.want)
			}
		})
	}
}
