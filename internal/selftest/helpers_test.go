package selftest

import (
	"testing"

	"localembed/internal/onnx"
	"localembed/internal/testenv"
)

func loadORT(t *testing.T) *onnx.Runtime {
	t.Helper()
	rt, err := onnx.Load(testenv.ORT(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}
