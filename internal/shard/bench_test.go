package shard

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkWrite publishes a window of 100 000 vectors of 384 floats, an id and a
// short kept column. Vectors are counted by the second and by the second of a
// core's time.
func BenchmarkWrite(b *testing.B) {
	w := newWindow(b, 100_000, 384, false)
	dir := b.TempDir()
	cpu := cpuTime(b)
	for b.Loop() {
		if err := w.layout.Write(vfs.Default, dir, 0, [32]byte{}, w.rows); err != nil {
			b.Fatal(err)
		}
	}
	report(b, w, dir, cpuTime(b)-cpu)
}

// BenchmarkRead reads it back, as a store that is rebuilt does.
func BenchmarkRead(b *testing.B) {
	w := newWindow(b, 100_000, 384, false)
	dir := b.TempDir()
	if err := w.layout.Write(vfs.Default, dir, 0, [32]byte{}, w.rows); err != nil {
		b.Fatal(err)
	}
	cpu := cpuTime(b)
	for b.Loop() {
		if err := Read(vfs.Default, Path(vfs.Default, dir, 0), func(Batch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	report(b, w, dir, cpuTime(b)-cpu)
}

func report(b *testing.B, w *window, dir string, cpu time.Duration) {
	n := float64(len(w.rows.Docs)) * float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "vectors/s")
	b.ReportMetric(n/cpu.Seconds(), "vectors/cpu-s")
	stat, err := os.Stat(Path(vfs.Default, dir, 0))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(stat.Size())/float64(len(w.rows.Docs)), "bytes/vector")
	b.SetBytes(int64(len(w.vectors)) * 4)
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
