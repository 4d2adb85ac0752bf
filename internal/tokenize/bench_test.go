package tokenize

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/testenv"
)

func BenchmarkEncode(b *testing.B) {
	rows, err := parquet.ReadFile[struct {
		Text string `parquet:"text"`
	}](testenv.Shared(b, "reference", "debian_3k.parquet"))
	if err != nil {
		b.Fatal(err)
	}
	var texts column.Arena
	var docs []int32
	for i, row := range rows {
		texts.Append([]byte(row.Text))
		docs = append(docs, int32(i))
	}
	tokenizer := miniLM(b, Options{MaxTokens: 256})
	for _, cores := range []int{1, 2} {
		b.Run(fmt.Sprintf("cores=%d", cores), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			var out Tokens
			for b.Loop() {
				out.Reset()
				if err := tokenizer.Encode(context.Background(), &texts, docs, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(out.IDs))*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
