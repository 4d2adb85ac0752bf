package tokenize

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
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
			start := cpuSeconds(b)
			for b.Loop() {
				out.Reset()
				if err := tokenizer.Encode(context.Background(), &texts, docs, &out); err != nil {
					b.Fatal(err)
				}
			}
			tokens := float64(len(out.IDs)) * float64(b.N)
			b.ReportMetric(tokens/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(tokens/(cpuSeconds(b)-start), "tokens/cpu-s")
		})
	}
}

// cpuSeconds is the processor time that the process has used: it can be compared
// even where others use the machine too.
func cpuSeconds(t testing.TB) float64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
