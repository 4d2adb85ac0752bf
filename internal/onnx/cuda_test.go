package onnx

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"
	"localembed/internal/testenv"
)

// The library that tests use is the one for CPUs, and says so itself.
func TestALibraryWithoutCUDA(t *testing.T) {
	err := load(t).CUDA()
	if e := fault.Of(err); e == nil || e.Class != fault.DeviceUnavailable || e.File != testenv.ORT(t) || !strings.Contains(e.Message, "without CUDA") || e.Hint == "" {
		t.Errorf("got %v", err)
	}
}

// A library that needs another one which is not there is answered with its name.
func TestWhatALibraryIsMissing(t *testing.T) {
	dir := t.TempDir()
	compile := func(name string, args ...string) string {
		out := filepath.Join(dir, name)
		args = append([]string{"-shared", "-fPIC", "-o", out, "-x", "c", "/dev/null"}, args...)
		if b, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
			t.Fatalf("cc: %v\n%s", err, b)
		}
		return out
	}
	needed := compile("libneeded-by-a-test.so")
	needs := compile("libneeds.so", "-L"+dir, "-Wl,--no-as-needed", "-Wl,-rpath,"+dir, "-x", "none", needed)
	if why := cannotLoad(needs); why != "" {
		t.Fatalf("with all that it needs: %s", why)
	}
	if err := os.Remove(needed); err != nil {
		t.Fatal(err)
	}
	if why := cannotLoad(needs); !strings.Contains(why, "libneeded-by-a-test.so") {
		t.Errorf("got %q", why)
	}
}
