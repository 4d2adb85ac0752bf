package onnx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/testenv"
	"localembed/models"
)

// A text of 8 192 tokens attends in blocks: its scores, 512 MiB a layer here, are never
// in memory all at once.
func TestMemoryOfALongText(t *testing.T) {
	const tokens = 8192
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testenv.Root(t), "models", "testdata", "zoo", "modernbert-cls-long"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sentence_bert_config.json"), fmt.Appendf(nil, `{"max_seq_length": %d}`, tokens), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := models.Open(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := cpu(t, load(t), m)
	ids := make([]int64, tokens)
	for i := range ids {
		ids[i] = int64(i % m.VocabSize)
	}
	out := make([]float32, m.Recipe.Dims)
	if err := s.Run(ids[:64], 1, 64, nil, out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skipf("skipped: the peak of memory cannot be reset here: %v", err)
	}
	before := peak(t)
	if err := s.Run(ids, 1, tokens, nil, out); err != nil {
		t.Fatal(err)
	}
	if grown := peak(t) - before; grown > 200<<10 {
		t.Errorf("a text of %d tokens took %d MiB", tokens, grown>>10)
	}
}

// peak is the most memory that was resident, in KiB.
func peak(t *testing.T) (kib int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("no VmHWM in /proc/self/status: %v", err)
	}
	return kib
}
