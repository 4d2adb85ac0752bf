package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/backfill"
	"localembed/internal/hub/hubtest"
	"localembed/internal/onnx"
	"localembed/internal/shard"
	"localembed/internal/testenv"
)

// hubbed runs localembed in a folder of its own, with a hub that serves a tiny model.
type hubbed struct {
	t           *testing.T
	dir, folder string
	hub         *hubtest.Server
	commit      string
	env         []string
}

const hubModel = "some-org/tiny"

func newHubbed(t *testing.T) *hubbed {
	h := &hubbed{t: t, dir: t.TempDir(), hub: hubtest.New(t),
		folder: filepath.Join(testenv.Root(t), "models", "testdata", "zoo", "bert-cls-one-layer")}
	h.commit = h.hub.Add(t, hubModel, "main", h.folder)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HF_") {
			h.env = append(h.env, v)
		}
	}
	h.env = append(h.env, onnx.Env+"="+testenv.ORT(t), "HF_ENDPOINT="+h.hub.URL, "HF_HOME="+filepath.Join(h.dir, "hf"))
	var rows []corpusRow
	for i := range 30 {
		text := fmt.Sprintf("text %d of a few", i)
		rows = append(rows, corpusRow{ID: int64(i), Text: &text})
	}
	if err := parquet.WriteFile(filepath.Join(h.dir, "corpus.parquet"), rows); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hubbed) start(args ...string) (c *exec.Cmd, stdout, stderr *bytes.Buffer) {
	h.t.Helper()
	exe, err := exec.LookPath("localembed") // made by TestMain
	if err != nil {
		h.t.Fatal(err)
	}
	c = exec.Command(exe, args...)
	c.Dir, c.Env = h.dir, h.env
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	c.Stdout, c.Stderr = stdout, stderr
	if err := c.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Process.Kill() })
	return c, stdout, stderr
}

func (h *hubbed) must(args ...string) (stdout, stderr string) {
	h.t.Helper()
	c, out, errs := h.start(args...)
	if err := c.Wait(); err != nil {
		h.t.Fatalf("%v: %v\n%s", args, err, errs)
	}
	return out.String(), errs.String()
}

// run embeds the corpus and gives the report and the shard's footer.
func (h *hubbed) run(out, model string, more ...string) (r backfill.Report, meta shard.Meta) {
	h.t.Helper()
	stdout, _ := h.must(append([]string{"run", "--json", "--model", model, "--out", out, "corpus.parquet"}, more...)...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		h.t.Fatal(err)
	}
	info, err := shard.Footer(vfs.Default, shard.Path(vfs.Default, filepath.Join(h.dir, out), 0))
	if err != nil || info.State != shard.Good {
		h.t.Fatal(info.Why, err)
	}
	return r, info.Meta
}

// A hub's model gives the vectors of its folder, under the same keys; the footer and the
// report say the commit; another revision with the same bytes computes nothing; all
// commands work offline.
func TestHubModel(t *testing.T) {
	h := newHubbed(t)
	local, meta := h.run("a", h.folder, "--store", "store")
	if meta.Revision != "" || local.ModelRevision != "" {
		t.Errorf("a folder has the revision %q", meta.Revision)
	}
	plan, _ := h.must("plan", "--json", "--model", hubModel, "--out", "b", "corpus.parquet")
	if !strings.Contains(plan, `"documents_in": 30`) {
		t.Error(plan)
	}
	r, meta := h.run("b", hubModel)
	if meta.Revision != h.commit || r.ModelRevision != h.commit || meta.Recipe != local.Recipe || r.VectorsComputed != local.VectorsComputed {
		t.Errorf("revision %q, report %+v", meta.Revision, r)
	}
	type row struct {
		Hash   string    `parquet:"content_hash"`
		Vector []float32 `parquet:"embedding,list"`
	}
	a, errA := parquet.ReadFile[row](filepath.Join(h.dir, "a", shard.Name(0)))
	b, errB := parquet.ReadFile[row](filepath.Join(h.dir, "b", shard.Name(0)))
	if errA != nil || errB != nil || len(a) != 30 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("the vectors differ: %v, %v", errA, errB)
	}
	other := h.hub.Add(t, hubModel, "v2", h.folder)
	if r, meta := h.run("c", hubModel+"@v2", "--store", "store"); r.VectorsComputed != 0 || meta.Revision != other {
		t.Errorf("%d vectors computed at %s", r.VectorsComputed, meta.Revision)
	}
	h.hub.Requests()
	h.env = append(h.env, "HF_HUB_OFFLINE=1")
	h.run("d", hubModel)
	if hits, _ := h.must("query", "b", "text 7 of a few"); !strings.Contains(hits, "text 7 of a few") {
		t.Error(hits)
	}
	if info, _ := h.must("model", hubModel+"@v2"); !strings.Contains(info, other) {
		t.Error(info)
	}
	if r := h.hub.Requests(); len(r) != 0 {
		t.Errorf("asked the hub offline: %v", r)
	}
	// A folder of the name wins, and the output says so.
	if err := os.CopyFS(filepath.Join(h.dir, "some-org", "tiny"), os.DirFS(h.folder)); err != nil {
		t.Fatal(err)
	}
	if _, stderr := h.must("model", hubModel); !strings.Contains(stderr, "a folder here, not a hub's") {
		t.Error(stderr)
	}
}

// A process killed in the middle of a download goes on at the byte where it was.
func TestHubDownloadKilled(t *testing.T) {
	h := newHubbed(t)
	const first = 2000
	arrived, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	var goOn atomic.Bool
	h.hub.AnswerLarge(func(w http.ResponseWriter, r *http.Request, b []byte) bool {
		if goOn.Load() {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b[:first])
		w.(http.Flusher).Flush()
		close(arrived)
		<-over
		return true
	})
	c, _, stderr := h.start("model", hubModel)
	<-arrived
	p := &process{t: t}
	p.until(c, func() bool {
		parts, _ := filepath.Glob(filepath.Join(h.dir, "hf", "hub", "*", "blobs", "*.incomplete"))
		if len(parts) != 1 {
			return false
		}
		st, err := os.Stat(parts[0])
		return err == nil && st.Size() == first
	})
	_ = c.Process.Kill()
	if err := c.Wait(); err == nil {
		t.Fatalf("it was not killed: %s", stderr)
	}
	goOn.Store(true)
	h.hub.Requests()
	h.must("model", hubModel)
	var ranges []string
	for _, r := range h.hub.Requests() {
		if r.Large {
			ranges = append(ranges, r.Range)
		}
	}
	if fmt.Sprint(ranges) != fmt.Sprintf("[bytes=%d-]", first) {
		t.Errorf("asked for %v", ranges)
	}
	if r, _ := h.run("out", hubModel); r.RowsEmbedded != 30 {
		t.Errorf("%d rows", r.RowsEmbedded)
	}
}

// What cannot be fetched ends with the exit code of its class, and one sentence.
func TestHubFailures(t *testing.T) {
	h := newHubbed(t)
	for _, c := range []struct {
		model, env string
		exit       int
		words      string
	}{
		{"some-org/nothing", "", 2, "neither such a folder here nor a model"},
		{hubModel + "@v9", "", 2, "no revision"},
		{hubModel, "HF_HUB_OFFLINE=1", 2, "not in the cache"},
		{hubModel, "HF_ENDPOINT=http://127.0.0.1:1", 1, "cannot be reached"},
		{"./some-org/tiny", "", 2, "no such model folder"},
	} {
		env := h.env
		if c.env != "" {
			h.env = append(env[:len(env):len(env)], c.env)
		}
		p, _, stderr := h.start("model", c.model)
		h.env = env
		_ = p.Wait()
		if p.ProcessState.ExitCode() != c.exit || !strings.Contains(stderr.String(), c.words) {
			t.Errorf("%s %s: exit %d: %s", c.model, c.env, p.ProcessState.ExitCode(), stderr)
		}
	}
}
