package onnx

import (
	"os"
	"path/filepath"
	"testing"

	"localembed/models"
)

// root is the folder of go.mod.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// load loads ONNX Runtime for a test.
func load(t testing.TB) *Runtime {
	t.Helper()
	rt, err := Load("")
	if err != nil {
		t.Skipf("ONNX Runtime is missing; `make build` fetches it: %v", err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// minilm opens the real model.
func minilm(t testing.TB) *models.Model {
	t.Helper()
	dir := filepath.Join(root(t), ".cache", "models", "all-MiniLM-L6-v2")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the model all-MiniLM-L6-v2 is missing; `make model` fetches it")
	}
	m, err := models.Open(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cpu opens a model on one thread.
func cpu(t testing.TB, rt *Runtime, m GraphSource) *Session {
	t.Helper()
	s, err := rt.OpenCPU("cpu:0", m, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
