package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/selftest"
	"localembed/internal/testenv"
	"localembed/models/modeltest"
)

// A hub's model of ONNX files alone is fetched with its external data. As it quantizes by
// what is in the batch, every command says that vectors depend on it, and the report too.
func TestADynamicallyQuantizedModelOfAHub(t *testing.T) {
	h := newHubbed(t)
	b := modeltest.New()
	b.Vocab, b.Hidden, b.Heads = 30522, 8, 2
	b.Fill()
	dir := b.Write(t)
	graph, data := modeltest.Outside(t, b.LookUp(t, 17, "dynamic"), "model.onnx_data")
	words, err := os.ReadFile(filepath.Join(testenv.Model(t), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "onnx"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tokenizer.json": words, "onnx/model.onnx": graph, "onnx/model.onnx_data": data, "onnx/model_O4.onnx": []byte("not wanted")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	const name = "some-org/quantized"
	h.hub.Add(t, name, "main", dir)

	const warning = "onnx/model.onnx is dynamically quantized (DynamicQuantizeLinear, MatMulInteger, weights of INT8) as it runs: a vector depends on the other texts of its batch"
	said := func(command, out string) {
		t.Helper()
		if !strings.Contains(out, warning) {
			t.Errorf("%s does not warn: %s", command, out)
		}
	}
	stdout, _ := h.must("model", name)
	said("model", stdout)
	_, stderr := h.must("plan", "--model", name, "--out", "out", "corpus.parquet")
	said("plan", stderr)
	_, stderr = h.must("run", "--model", name, "--out", "out", "corpus.parquet")
	said("run", stderr)
	raw, err := os.ReadFile(filepath.Join(h.dir, "out", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		RowsEmbedded    int64           `json:"rows_embedded"`
		Reproducibility selftest.Result `json:"reproducibility"`
		Warnings        []string        `json:"warnings"`
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	if report.RowsEmbedded != 30 || report.Reproducibility.Level != selftest.Dependent || report.Reproducibility.Difference == 0 {
		t.Errorf("report %+v", report)
	}
	said("report.json", strings.Join(report.Warnings, " "))
	if hits, _ := h.must("query", "out", "text 7 of a few"); !strings.Contains(hits, "text 7 of a few") {
		t.Error(hits)
	}
	var fetched []string
	snapshots := filepath.Join(h.dir, "hf", "hub", "models--some-org--quantized", "snapshots")
	found, err := filepath.Glob(filepath.Join(snapshots, "*", "onnx", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		fetched = append(fetched, filepath.Base(path))
	}
	if want := []string{"model.onnx", "model.onnx_data"}; !slices.Equal(fetched, want) {
		t.Errorf("fetched %q, want %q", fetched, want)
	}
}
