package corpus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestMemoryIsFlat reads a corpus of many windows with long texts among short
// ones: what is live must not grow with the corpus.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads 50 MB")
	}
	dir := t.TempDir()
	word := strings.Repeat("a sentence of words. ", 1<<16)
	for f := range 3 {
		rows := docs(f*10000, 10000)
		for i := 0; i < len(rows); i += 1000 {
			rows[i].Text = word + strconv.Itoa(i)
		}
		writeFile(t, filepath.Join(dir, fmt.Sprint(f, ".parquet")), rows, parquet.Compression(&parquet.Snappy), parquet.DataPageStatistics(false))
	}
	c, err := Open(context.Background(), Options{Args: []string{dir}, WindowDocs: 2048, WindowBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var w Window
	var live []uint64
	for {
		err := c.Next(context.Background(), &w)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		live = append(live, m.HeapAlloc)
	}
	early, late := live[len(live)/4], live[len(live)-1]
	t.Logf("%d windows; live after a quarter %d MiB, at the end %d MiB", len(live), early>>20, late>>20)
	if late > early+early/4+(4<<20) {
		t.Errorf("memory grew from %d to %d bytes", early, late)
	}
}

// BenchmarkNext reads 600 000 texts of natural length with an id and a kept
// column; LOCALEMBED_BENCH_ROWS sets another number.
func BenchmarkNext(b *testing.B) {
	n := 600_000
	if s := os.Getenv("LOCALEMBED_BENCH_ROWS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	type row struct {
		ID   string `parquet:"id"`
		Text string `parquet:"text"`
		Kept int64  `parquet:"kept"`
	}
	path := filepath.Join(b.TempDir(), "a.parquet")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := parquet.NewGenericWriter[row](f, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(100_000))
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for i := range n {
		text.Reset()
		for range 5 + r.IntN(120) {
			fmt.Fprintf(&text, "w%d ", r.IntN(5000))
		}
		if _, err := w.Write([]row{{"doc-" + strconv.Itoa(i), text.String(), int64(i)}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		b.Fatal(err)
	}
	var win Window
	rows, bytes := int64(0), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		c, err := Open(context.Background(), Options{Args: []string{path}, Keep: []string{"kept"}, WindowDocs: 8192})
		if err != nil {
			b.Fatal(err)
		}
		for {
			err := c.Next(context.Background(), &win)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			rows += int64(win.Len())
			bytes += int64(len(win.Text.Data))
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(bytes)/b.Elapsed().Seconds()/1e6, "MB/s")
}
