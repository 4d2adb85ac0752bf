package onnx

import (
	"path/filepath"
	"testing"

	"localembed/internal/testenv"
	"localembed/models"
)

// shared is a path beside the repository, where reference files may lie.
func shared(t testing.TB, parts ...string) string {
	t.Helper()
	return filepath.Join(append([]string{testenv.Root(t), "..", "shared"}, parts...)...)
}

// load loads ONNX Runtime for a test.
func load(t testing.TB) *Runtime {
	t.Helper()
	rt, err := Load(testenv.ORT(t))
	if err != nil {
		t.Fatal(err)
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
	m, err := models.Open(testenv.Model(t), models.Options{})
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
