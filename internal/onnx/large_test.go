package onnx

import (
	"os"
	"path/filepath"
	"testing"

	"localembed/models"
	"localembed/models/modeltest"
)

// External data of more than 2 GiB is read where it lies: a table in a sparse file, of
// which the last row alone is not zero. It takes 3 GB of memory, so make soak runs it.
func TestLargeExternalData(t *testing.T) {
	if os.Getenv("LOCALEMBED_SOAK") == "" {
		t.Skip("it takes 3 GB of memory: make soak runs it")
	}
	const hidden, vocab = 1024, 1<<19 + 1000
	b := modeltest.New()
	b.Vocab, b.Hidden, b.Normalize, b.Pooling = 2, hidden, false, "mean"
	b.Fill()
	b.Vocab = vocab
	dir := b.Write(t)
	raw, _ := modeltest.Outside(t, b.LookUp(t, 17, "fp32"), "model.onnx_data")
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := os.Create(filepath.Join(dir, "model.onnx_data"))
	if err != nil {
		t.Fatal(err)
	}
	one := []byte{0, 0, 0x80, 0x3f}
	if _, err := data.WriteAt(one, 4*(hidden*vocab-1)); err != nil {
		t.Fatal(err)
	}
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	model, err := models.Open(dir, models.Options{ONNX: true})
	if err != nil {
		t.Fatal(err)
	}
	s := cpu(t, load(t), model)
	got := make([]float32, hidden)
	if err := s.Run([]int64{vocab - 1, 0}, 1, 2, nil, got); err != nil {
		t.Fatal(err)
	}
	if got[hidden-1] != 0.5 || got[0] != 0 {
		t.Errorf("got %g … %g, want 0 … 0.5", got[0], got[hidden-1])
	}
}
