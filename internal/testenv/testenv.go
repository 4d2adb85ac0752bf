// Package testenv finds what `make deps` put into .cache, for tests: the model
// folder, ONNX Runtime, the Python with the Parquet readers, and the reference
// files that may lie beside the repository.
//
// What make deps makes is always there when tests run through make, so its
// absence fails a test. The reference files are optional: their absence skips.
package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// Root is the repository's folder: the nearest one upwards with a go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working folder: run the tests inside the repository")
		}
		dir = parent
	}
}

// Model is the folder of all-MiniLM-L6-v2.
func Model(t testing.TB) string {
	t.Helper()
	return cached(t, "models", "all-MiniLM-L6-v2")
}

// Int8 is a folder of the same model with int8 weights in an ONNX file, which quantizes
// its inputs as it runs.
func Int8(t testing.TB) string {
	t.Helper()
	return cached(t, "models", "all-MiniLM-L6-v2-int8")
}

// ORT is the path of libonnxruntime.
func ORT(t testing.TB) string {
	t.Helper()
	return cached(t, "lib", "libonnxruntime.so.1.31.1")
}

// Python is an interpreter that has pyarrow, duckdb, polars, pandas and numpy.
func Python(t testing.TB) string {
	t.Helper()
	return cached(t, "venv", "bin", "python")
}

func cached(t testing.TB, parts ...string) string {
	t.Helper()
	p := filepath.Join(append([]string{Root(t), ".cache"}, parts...)...)
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("%s is missing: run `make deps` first", p)
	}
	return p
}

// Shared is a file or folder of the reference material beside the repository.
// The test is skipped where there is none.
func Shared(t testing.TB, parts ...string) string {
	t.Helper()
	p := filepath.Join(append([]string{Root(t), "..", "shared"}, parts...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("skipped: the reference material %s is not on this machine", p)
	}
	return p
}
