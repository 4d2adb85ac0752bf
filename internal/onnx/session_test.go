package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"
	"localembed/models"
	"localembed/models/modeltest"
)

// tinySession opens a tiny BERT.
func tinySession(t *testing.T) (*Session, *models.Model) {
	t.Helper()
	b := modeltest.New()
	b.Fill()
	m, err := models.Open(b.Write(t), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cpu(t, load(t), m), m
}

func TestRunRefuses(t *testing.T) {
	s, m := tinySession(t)
	dim := m.Recipe.Dims
	for name, c := range map[string]struct {
		ids           []int64
		items, length int
		lengths       []int32
		out           int
		class         fault.Class
		want          string
	}{
		"too few ids":       {make([]int64, 5), 2, 3, nil, 2 * dim, fault.Internal, "2 texts of 3 tokens came with 5 ids"},
		"nothing":           {nil, 0, 0, nil, 0, fault.Internal, "0 texts"},
		"too few lengths":   {make([]int64, 6), 2, 3, []int32{3}, 2 * dim, fault.Internal, "came with 1 lengths"},
		"a length of 0":     {make([]int64, 6), 2, 3, []int32{3, 0}, 2 * dim, fault.Internal, "a text of 0 tokens"},
		"a length too long": {make([]int64, 6), 2, 3, []int32{3, 4}, 2 * dim, fault.Internal, "a text of 4 tokens"},
		"room":              {make([]int64, 6), 2, 3, nil, dim, fault.BadVectors, "has room for 24 numbers"},
		"id too large":      {[]int64{1, 50, 2}, 1, 3, nil, dim, fault.ModelRefused, "the id 50, but the model has only 50 tokens"},
		"id negative":       {[]int64{1, -1, 2}, 1, 3, nil, dim, fault.ModelRefused, "the id -1"},
		"bad id in padding": {[]int64{1, 2, 77}, 1, 3, []int32{2}, dim, fault.ModelRefused, "the id 77"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Run(c.ids, c.items, c.length, c.lengths, make([]float32, c.out))
			if err == nil || !fault.Is(err, c.class) || KindOf(err) != Fatal || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Longer than the positions: the graph itself refuses, and the device lives on.
func TestRunFails(t *testing.T) {
	s, m := tinySession(t)
	out := make([]float32, m.Recipe.Dims)
	err := s.Run(make([]int64, 21), 1, 21, nil, out)
	if !fault.Is(err, fault.DeviceFailed) || KindOf(err) != Transient || !strings.Contains(err.Error(), "cpu:0: a batch of 1 texts of 21 tokens failed") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if err := s.Run(make([]int64, 20), 1, 20, nil, out); err != nil {
		t.Errorf("the next batch: %v", err)
	}
}

// resized says of its graph that vectors have another size than they have.
type resized struct {
	*models.Model
	by int
}

func (r resized) Graph(masked bool) (models.Graph, error) {
	g, err := r.Model.Graph(masked)
	g.Dim += r.by
	return g, err
}

// Vectors of another size than the model's are no failure of the device: nothing can
// mend them, and none of them may be kept.
func TestVectorsOfAnotherSize(t *testing.T) {
	_, m := tinySession(t)
	for _, by := range []int{-4, 4} {
		s := cpu(t, load(t), resized{m, by})
		err := s.Run(make([]int64, 6), 2, 3, nil, make([]float32, 2*(m.Recipe.Dims+by)))
		if !fault.Is(err, fault.BadVectors) || KindOf(err) != Fatal {
			t.Errorf("%+d: %v", by, err)
		}
	}
}

func TestOutOfMemoryIsRecognized(t *testing.T) {
	s := &Session{name: "cpu:0"}
	for text, want := range map[string]Kind{
		"Non-zero status code returned while running Gemm node. Failed to allocate memory for requested buffer of size 9": OutOfMemory,
		"std::bad_alloc":                        OutOfMemory,
		"CUDA failure 2: out of memory ; GPU=0": OutOfMemory,
		"Attempting to broadcast an axis":       Transient,
	} {
		if got := KindOf(s.failed(1, 2, errors.New(text))); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// source gives the same graph always.
type source models.Graph

func (s source) Graph(bool) (models.Graph, error) { return models.Graph(s), nil }

// A graph that the library refuses is a sentence, on one line.
func TestOpenRefuses(t *testing.T) {
	rt := load(t)
	for name, g := range map[string]source{
		"empty":     {Output: "v"},
		"no ONNX":   {Proto: []byte("text"), Output: "v"},
		"no folder": {Proto: []byte("\x08\x0a\x3a\x00"), DataDir: filepath.Join(t.TempDir(), "no"), Output: "v"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rt.OpenCPU("cpu:0", g, 1)
			f := fault.Of(err)
			if f == nil || f.Class != fault.ModelRefused || f.Hint == "" || strings.Contains(f.Error(), "\n") {
				t.Errorf("got %q", f)
			}
		})
	}
}

func TestClosedSession(t *testing.T) {
	s, m := tinySession(t)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Run(make([]int64, 3), 1, 3, nil, make([]float32, m.Recipe.Dims))
	if !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
}

func TestRunKeepsToItsBuffers(t *testing.T) {
	s, m := tinySession(t)
	dim := m.Recipe.Dims
	ids, out := make([]int64, 60), make([]float32, 3*dim)
	lengths := []int32{20, 7, 1}
	run := func() {
		if err := s.Run(ids, 3, 20, lengths, out); err != nil {
			t.Fatal(err)
		}
	}
	run()
	// Handles of three tensors; nothing of the size of a batch.
	if n := testing.AllocsPerRun(20, run); n > 24 {
		t.Errorf("a Run allocates %v times", n)
	}
}

// A folder whose weights are links into another folder, as a hub's cache lays
// it out.
func TestLinkedWeights(t *testing.T) {
	b := modeltest.New()
	b.Fill()
	dir, blobs := b.Write(t), t.TempDir()
	from, to := filepath.Join(dir, "model.safetensors"), filepath.Join(blobs, "0123abcd")
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
	m, err := models.Open(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := cpu(t, load(t), m)
	ids := []int64{1, 2, 3}
	got := make([]float32, m.Recipe.Dims)
	if err := s.Run(ids, 1, 3, nil, got); err != nil {
		t.Fatal(err)
	}
	within(t, "linked", 0, got, b.Vector(ids))
}

func TestLoadSaysWhereItLooked(t *testing.T) {
	t.Run("given", func(t *testing.T) {
		_, err := Load(filepath.Join(t.TempDir(), "libonnxruntime.so"))
		f := fault.Of(err)
		if f == nil || f.Class != fault.DeviceUnavailable || !strings.Contains(f.Message, "--ort-lib") || f.Hint == "" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv(Env, t.TempDir())
		_, err := Load("")
		if f := fault.Of(err); f == nil || f.Class != fault.DeviceUnavailable || !strings.Contains(f.Message, Env) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		cwd := t.TempDir()
		t.Chdir(cwd)
		_, err := Load("")
		f := fault.Of(err)
		if f == nil || f.Class != fault.DeviceUnavailable {
			t.Fatalf("got %v", err)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{filepath.Dir(exe), filepath.Join(cwd, ".cache", "lib")} {
			if !strings.Contains(f.Message, dir) {
				t.Errorf("%q does not name %s", f.Message, dir)
			}
		}
	})
	t.Run("no library", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "libonnxruntime.so")
		if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if f := fault.Of(err); f == nil || f.Class != fault.DeviceUnavailable || f.File != path {
			t.Errorf("got %v", err)
		}
		load(t) // a good one still loads
	})
	t.Run("folder", func(t *testing.T) {
		rt := load(t)
		again, err := Load(filepath.Dir(rt.Library()))
		if err != nil {
			t.Fatal(err)
		}
		if again.Library() != rt.Library() || again.Version() == "" {
			t.Errorf("got %q, version %q", again.Library(), again.Version())
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCPUSessions(t *testing.T) {
	if n := CPUSessions(90 << 20); n < 1 {
		t.Errorf("%d sessions", n)
	}
	if n := CPUSessions(1 << 60); n != 1 {
		t.Errorf("%d sessions of a model larger than any memory, want 1", n)
	}
	if Memory() < 1<<20 {
		t.Errorf("%d bytes of memory", Memory())
	}
}
