package hub

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localembed/internal/fault"
	"localembed/internal/hub/hubtest"
	"localembed/internal/testenv"
	"localembed/models"
	"localembed/models/modeltest"
)

const model = "some-org/bert.tiny"

func TestMain(m *testing.M) {
	firstPause = time.Millisecond
	os.Exit(m.Run())
}

// serve starts a hub with a model of the zoo and files that nobody wants, and an empty
// cache.
func serve(t *testing.T, folder string) (s *hubtest.Server, dir, commit string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testenv.Root(t), "models", "testdata", "zoo", folder))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pytorch_model.bin", "README.md", "tf_model.h5", "onnx/model.onnx", "1_Pooling/other.json", "model.gguf"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("not wanted: "+name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s = hubtest.New(t)
	commit = s.Add(t, model, "main", dir)
	for _, name := range []string{"HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_OFFLINE", "HF_TOKEN_PATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_ENDPOINT", s.URL)
	return s, dir, commit
}

func fetch(t *testing.T, name string) (*Model, error) {
	t.Helper()
	n, ok := Parse(name)
	if !ok {
		t.Fatalf("%q is not a name", name)
	}
	return Fetch(context.Background(), n, Options{
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Wanted: func(dir string, names []string) []string { return models.Wanted(dir, names, false) },
	})
}

func mustFetch(t *testing.T, name string) *Model {
	t.Helper()
	m, err := fetch(t, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func list(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func wants(t *testing.T, err error, class fault.Class, words ...string) {
	t.Helper()
	e := fault.Of(err)
	if e == nil || e.Class != class {
		t.Fatalf("%v, want the class %s", err, class)
	}
	for _, w := range words {
		if !strings.Contains(e.Error()+" "+e.Hint, w) {
			t.Errorf("%q is not in: %v; %s", w, e, e.Hint)
		}
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]string{
		"org/name": "org/name@main", "org/name@v1.0": "org/name@v1.0", "org/name@refs/pr/1": "org/name@refs/pr/1",
		"name": "", "./org/name": "", "/org/name": "", "a/b/c": "", "org/": "", "org/name@": "", "org/name@../../x": "", "../name": "", "org/a--b": "", "~/x": "",
	} {
		n, ok := Parse(s)
		if ok != (want != "") || ok && n.String() != want {
			t.Errorf("%q: %v, %v", s, n, ok)
		}
	}
}

// What the model needs is fetched, nothing else; it reads as the folder does; a second
// time only the listing is asked for.
func TestFetch(t *testing.T) {
	for folder, want := range map[string][]string{
		"bert-cls-one-layer": {"1_Pooling/config.json", "config.json", "config_sentence_transformers.json", "model.safetensors", "modules.json",
			"sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"},
		"bert-two-dense":         nil,
		"bert-fp16-shards-heads": nil,
	} {
		t.Run(folder, func(t *testing.T) {
			s, dir, commit := serve(t, folder)
			m := mustFetch(t, model)
			if m.Commit != commit {
				t.Errorf("commit %s, want %s", m.Commit, commit)
			}
			got := list(t, m.Dir)
			if want == nil {
				want = list(t, filepath.Join(testenv.Root(t), "models", "testdata", "zoo", folder))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("files: %s", d)
			}
			a, errA := models.Open(m.Dir, models.Options{})
			b, errB := models.Open(dir, models.Options{})
			if errA != nil || errB != nil || a.Recipe != b.Recipe {
				t.Errorf("%v, %v: the recipes differ", errA, errB)
			}
			s.Requests()
			mustFetch(t, model)
			if r := s.Requests(); len(r) != 1 {
				t.Errorf("asked again: %v", r)
			}
			// Another revision with the same bytes shares the blobs.
			other := s.Add(t, model, "v2", dir)
			if m := mustFetch(t, model+"@v2"); m.Commit != other {
				t.Errorf("commit %s", m.Commit)
			}
			if r := s.Requests(); len(r) != 1 {
				t.Errorf("fetched again: %v", r)
			}
			t.Setenv("HF_HUB_OFFLINE", "1")
			for _, name := range []string{model, model + "@v2", model + "@" + commit} {
				mustFetch(t, name)
			}
			if r := s.Requests(); len(r) != 0 {
				t.Errorf("asked offline: %v", r)
			}
		})
	}
}

// Where no graph can be built, the ONNX file is fetched, and what it names as its data.
func TestFetchONNX(t *testing.T) {
	s, dir, _ := serve(t, "bert-cls-one-layer")
	look := modeltest.New()
	look.Fill()
	graph, data := modeltest.Outside(t, look.LookUp(t, 17, "fp32"), "parts/weights.bin")
	for name, content := range map[string][]byte{"onnx/model.onnx": graph, "onnx/parts/weights.bin": data, "onnx/model.onnx_data_of_another": data} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	s.Add(t, model, "main", dir)
	m := mustFetch(t, model)
	want := []string{"1_Pooling/config.json", "config.json", "config_sentence_transformers.json", "modules.json", "onnx/model.onnx",
		"onnx/parts/weights.bin", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"}
	if d := cmp.Diff(want, list(t, m.Dir)); d != "" {
		t.Errorf("files: %s", d)
	}
	opened, err := models.Open(m.Dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if local, err := models.Open(dir, models.Options{}); err != nil || local.Recipe != opened.Recipe {
		t.Errorf("%v: the recipes differ", err)
	}
}

// A download that breaks off goes on at the same byte, in this process and in the next.
func TestResume(t *testing.T) {
	s, dir, _ := serve(t, "bert-cls-one-layer")
	b, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	s.AnswerLarge(func(w http.ResponseWriter, r *http.Request, b []byte) bool {
		if broken++; broken > 2 {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		if broken == 2 {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(b[1000:1500])
			return true
		}
		_, _ = w.Write(b[:1000])
		return true
	})
	m := mustFetch(t, model)
	var ranges []string
	for _, r := range s.Requests() {
		if r.Large {
			ranges = append(ranges, r.Range)
		}
	}
	if d := cmp.Diff([]string{"", "bytes=1000-", "bytes=1500-"}, ranges); d != "" {
		t.Error(d)
	}
	got, err := os.ReadFile(filepath.Join(m.Dir, "model.safetensors"))
	if err != nil || !slices.Equal(b, got) {
		t.Errorf("other bytes, %v", err)
	}
}

// Bytes that do not have the checksum never get a name in the snapshot.
func TestChecksum(t *testing.T) {
	s, _, commit := serve(t, "bert-cls-one-layer")
	damage := 1
	s.AnswerLarge(func(w http.ResponseWriter, r *http.Request, b []byte) bool {
		if damage--; damage < 0 {
			return false
		}
		bad := slices.Clone(b)
		bad[len(bad)/2] ^= 1
		_, _ = w.Write(bad)
		return true
	})
	mustFetch(t, model) // the second attempt is whole
	t.Setenv("HF_HOME", t.TempDir())
	damage = 2
	_, err := fetch(t, model)
	wants(t, err, fault.CorruptFile, "model.safetensors", "checksum", "HF_ENDPOINT")
	if files := list(t, filepath.Join(os.Getenv("HF_HOME"), "hub", "models--some-org--bert.tiny", "snapshots", commit)); slices.Contains(files, "model.safetensors") {
		t.Error("the damaged file is in the snapshot")
	}
	mustFetch(t, model)
}

// The token goes to the hub, and not to the host that it redirects to.
func TestToken(t *testing.T) {
	s, _, _ := serve(t, "bert-cls-one-layer")
	s.Token = "hf_secret"
	_, err := fetch(t, model)
	wants(t, err, fault.NoSuchFile, model, "HF_TOKEN")
	t.Setenv("HF_TOKEN", "wrong")
	_, err = fetch(t, model)
	wants(t, err, fault.ModelRefused, model, "HF_TOKEN")
	t.Setenv("HF_TOKEN", "")
	if err := os.WriteFile(filepath.Join(os.Getenv("HF_HOME"), "token"), []byte("hf_secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Gated = true
	_, err = fetch(t, model)
	wants(t, err, fault.ModelRefused, "gated", "HF_TOKEN")
	s.Gated = false
	s.Requests()
	mustFetch(t, model)
	for _, r := range s.Requests() {
		if r.Large == (r.Token != "") {
			t.Errorf("%+v", r)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	s, _, _ := serve(t, "bert-cls-one-layer")
	_, err := fetch(t, "no/such")
	wants(t, err, fault.NoSuchFile, "no/such", "folder")
	_, err = fetch(t, model+"@v9")
	wants(t, err, fault.NoSuchFile, `no revision "v9"`)
	for _, name := range []string{"../../x.json", "/etc/x.json", "a/../../../x", `..\x`, "."} {
		s.Names = map[string]string{"config.json": name}
		_, err = fetch(t, model)
		wants(t, err, fault.IOError, "leads out of the model")
	}
	t.Setenv("HF_HUB_OFFLINE", "yes")
	_, err = fetch(t, model)
	wants(t, err, fault.NoSuchFile, "HF_HUB_OFFLINE", "copy models--some-org--bert.tiny")
	t.Setenv("HF_HUB_OFFLINE", "")
	t.Setenv("HF_ENDPOINT", "http://127.0.0.1:1")
	_, err = fetch(t, model)
	wants(t, err, fault.IOError, "cannot be reached", "copy models--some-org--bert.tiny")
	t.Setenv("HF_ENDPOINT", "nonsense")
	_, err = fetch(t, model)
	wants(t, err, fault.Usage, "HF_ENDPOINT")
}

// Without the hub, a model in the cache is used.
func TestUnreachable(t *testing.T) {
	_, _, commit := serve(t, "bert-cls-one-layer")
	mustFetch(t, model)
	t.Setenv("HF_ENDPOINT", "http://127.0.0.1:1")
	if m := mustFetch(t, model); m.Commit != commit {
		t.Errorf("commit %s", m.Commit)
	}
}

func TestDiskFull(t *testing.T) {
	e := settings{}.explain(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, Name{})
	wants(t, e, fault.DiskFull)
}

// Fetches side by side get one whole copy, and each large file crosses the wire once.
func TestSideBySide(t *testing.T) {
	s, _, _ := serve(t, "bert-cls-one-layer")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := fetch(t, model); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	large := 0
	for _, r := range s.Requests() {
		if r.Large {
			large++
		}
	}
	if large != 1 {
		t.Errorf("fetched %d times", large)
	}
}

// The hub's Python client finds what was fetched, and what it fetched is found.
func TestPythonAgrees(t *testing.T) {
	exe := filepath.Join(testenv.Root(t), ".cache", "bench-venv", "bin", "python")
	if _, err := os.Stat(exe); err != nil {
		t.Skip("no .cache/bench-venv, which has the hub's Python client")
	}
	s, _, commit := serve(t, "bert-two-dense")
	python := func(script string, args ...string) string {
		t.Helper()
		c := exec.Command(exe, append([]string{"-c", script}, args...)...)
		c.Env = []string{"HF_HOME=" + os.Getenv("HF_HOME"), "HF_ENDPOINT=" + s.URL, "HF_HUB_DISABLE_XET=1", "HF_HUB_DISABLE_TELEMETRY=1"}
		out, err := c.Output()
		if err != nil {
			var exit *exec.ExitError
			errors.As(err, &exit)
			t.Fatalf("%v\n%s", err, exit.Stderr)
		}
		return strings.TrimSpace(string(out))
	}
	m := mustFetch(t, model)
	files := list(t, m.Dir)
	got := python(`
import os, sys
from huggingface_hub import snapshot_download, try_to_load_from_cache
dir = snapshot_download(sys.argv[1], local_files_only=True)
for name in sys.argv[2:]:
    assert try_to_load_from_cache(sys.argv[1], name) == os.path.join(dir, name)
print(dir)`, append([]string{model}, files...)...)
	if got != m.Dir || filepath.Base(got) != commit {
		t.Errorf("%s, want %s", got, m.Dir)
	}

	t.Setenv("HF_HOME", t.TempDir())
	python(`
import sys
from huggingface_hub import hf_hub_download
for name in sys.argv[2:]:
    hf_hub_download(sys.argv[1], name)`, append([]string{model}, files...)...)
	s.Requests()
	m = mustFetch(t, model)
	if r := s.Requests(); len(r) != 1 {
		t.Errorf("fetched again: %v", r)
	}
	if d := cmp.Diff(files, list(t, m.Dir)); d != "" {
		t.Error(d)
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	mustFetch(t, model)
}
