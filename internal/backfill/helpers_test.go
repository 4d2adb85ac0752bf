package backfill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"localembed/internal/corpus"
	"localembed/internal/key"
	"localembed/internal/onnx/fake"
	"localembed/internal/shard"
	"localembed/internal/sortpack"
	"localembed/internal/testenv"
	"localembed/internal/tokenize"
)

const testDim = 8

// row is a row of a test corpus; a nil text is null.
type row struct {
	ID   int64   `parquet:"id"`
	Text *string `parquet:"text,optional"`
}

func str(format string, args ...any) *string {
	s := fmt.Sprintf(format, args...)
	return &s
}

// numbered makes n rows with texts of many lengths, of which every seventh repeats
// an earlier one.
func numbered(from, n int) []row {
	var rows []row
	for i := from; i < from+n; i++ {
		same := i
		if i%7 == 6 {
			same = i / 2
		}
		rows = append(rows, row{int64(i), str("text %d says %s", same, strings.Repeat("something more, ", same%23))})
	}
	return rows
}

func writeCorpus(t testing.TB, path string, rows []row) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
}

// tokenizer is MiniLM's, opened once.
func tokenizer(t testing.TB, maxTokens int) *tokenize.Tokenizer {
	t.Helper()
	json, err := os.ReadFile(filepath.Join(testenv.Model(t), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenize.Open(json, tokenize.Options{MaxTokens: maxTokens})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tok.Close)
	return tok
}

func init() { firstPause = time.Microsecond }

// job is a run in a test: a corpus on disk, fake devices, everything else real.
type job struct {
	t        testing.TB
	fs       vfs.FS // nil is the operating system's
	out      string
	store    string
	corpus   []string
	window   int
	limit    int64
	model    string // stands for another recipe
	onLong   string
	devices  int
	yes      bool
	retry    bool // what devices could not embed is tried again
	skip     bool // bad files are left out
	failed   float64
	limits   sortpack.Limits
	before   func(ids []int64, items, length int, lengths []int32) error
	faults   fake.Faults
	closed   bool // no device may be opened
	together bool // vectors depend on their batch

	vocab     int
	refuses   bool // texts that are unspeakable
	tokenizer *tokenize.Tokenizer
	ran       []*fake.Device
}

func newJob(t testing.TB, args ...string) *job {
	dir := t.TempDir()
	return &job{
		t: t, out: filepath.Join(dir, "out"), corpus: args, window: 50, model: "m", onLong: "truncate", devices: 2, failed: 100,
		limits: sortpack.Limits{Tokens: 200, Items: 8, Cells: 1 << 20, MinTokens: 1}, tokenizer: tokenizer(t, 64),
	}
}

func (j *job) options(ctx context.Context) Options {
	j.t.Helper()
	c, err := corpus.Open(ctx, corpus.Options{Args: j.corpus, Limit: j.limit, OutDir: j.out, WindowDocs: j.window, WindowBytes: 1 << 30, SkipBad: j.skip})
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = c.Close() })
	var files []JobFile
	for _, f := range c.Files() {
		files = append(files, JobFile{Name: f.Name, Rows: f.Rows})
	}
	recipe := key.Recipe{ModelDigest: j.model, Pooling: "mean", Normalize: true, MaxTokens: 64, Dims: testDim, Precision: "fp32"}
	var tokenizer Tokenizer = j.tokenizer
	if j.refuses {
		tokenizer = refusing{tokenizer}
	}
	return Options{
		FS: j.fs, Out: j.out, Store: j.store, Corpus: c, Tokenizer: tokenizer, VocabSize: j.vocab, Recipe: recipe, Limits: j.limits,
		Job:      Job{Corpus: j.corpus, Files: files, Limit: j.limit, OnLong: j.onLong, Window: j.window, Recipe: recipe},
		DropLong: j.onLong == "error", RetryFailed: j.retry, MaxFailed: j.failed, Yes: j.yes,
		Meta: shard.Meta{Tool: "localembed test", ONNXRuntime: "none", Device: "fake", Recipe: recipe},
		Log:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		OpenDevices: func() ([]Device, error) {
			if j.closed {
				return nil, errors.New("a device was opened although nothing had to be computed")
			}
			j.ran = nil
			var devices []Device
			for i := range j.devices {
				d := &fake.Device{DeviceName: fmt.Sprintf("fake:%d", i), Number: i, Faults: j.faults, Dim: testDim, Before: j.before, Together: j.together}
				j.ran = append(j.ran, d)
				devices = append(devices, d)
			}
			return devices, nil
		},
	}
}

func (j *job) try(ctx context.Context) (*Report, error) {
	j.t.Helper()
	return Run(ctx, j.options(ctx))
}

func (j *job) run() *Report {
	j.t.Helper()
	r, err := j.try(context.Background())
	if err != nil {
		j.t.Fatalf("run: %v", err)
	}
	return r
}

func (j *job) vfs() vfs.FS {
	if j.fs == nil {
		return vfs.Default
	}
	return j.fs
}

// read is a file of OUT.
func (j *job) read(path string) []byte {
	j.t.Helper()
	f, err := j.vfs().Open(path)
	if err != nil {
		j.t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		j.t.Fatal(err)
	}
	return b
}

// sums are the SHA-256 of every part and dead letter file of OUT.
func (j *job) sums() map[string]string {
	j.t.Helper()
	sums := map[string]string{}
	for _, dir := range []string{j.out, filepath.Join(j.out, shard.FailuresDir)} {
		parts, err := shard.List(j.vfs(), dir)
		if err != nil {
			j.t.Fatal(err)
		}
		for _, p := range parts {
			sum := sha256.Sum256(j.read(p.Path))
			sums[strings.TrimPrefix(p.Path, j.out)] = hex.EncodeToString(sum[:])
		}
	}
	return sums
}

// out is a row of a shard.
type out struct {
	ID    int64     `parquet:"id"`
	File  string    `parquet:"file"`
	Row   int64     `parquet:"row"`
	Hash  string    `parquet:"content_hash"`
	N     int32     `parquet:"n_tokens"`
	Cut   bool      `parquet:"truncated"`
	Value []float32 `parquet:"embedding,list"`
}

// rows reads all shards of OUT in order.
func (j *job) rows() []out {
	j.t.Helper()
	parts, err := shard.List(j.vfs(), j.out)
	if err != nil {
		j.t.Fatal(err)
	}
	var rows []out
	for i, p := range parts {
		if p.Index != i {
			j.t.Fatalf("part %d is missing", i)
		}
		b := j.read(p.Path)
		part, err := parquet.Read[out](bytes.NewReader(b), int64(len(b)))
		if err != nil {
			j.t.Fatal(err)
		}
		rows = append(rows, part...)
	}
	return rows
}

// check compares OUT with the corpus: every text in corpus order with the vector
// that the fake device makes of its ids.
func (j *job) check(corpus []row) {
	j.t.Helper()
	j.checkBut(corpus, "")
}

// checkBut compares OUT with the corpus without the texts that hold a word.
func (j *job) checkBut(corpus []row, dead string) {
	j.t.Helper()
	j.checkWithout(corpus, func(text string) bool { return dead != "" && strings.Contains(text, dead) })
}

// checkWithout compares OUT with the corpus without some texts.
func (j *job) checkWithout(corpus []row, dead func(text string) bool) {
	j.t.Helper()
	rows := j.rows()
	at := 0
	for _, want := range corpus {
		if want.Text == nil || strings.TrimSpace(*want.Text) == "" || dead(*want.Text) {
			continue
		}
		if at >= len(rows) {
			j.t.Fatalf("the shards end after %d rows", at)
		}
		got := rows[at]
		at++
		if got.ID != want.ID {
			j.t.Fatalf("row %d has id %d, want %d", at-1, got.ID, want.ID)
		}
		ids := j.ids(*want.Text)
		vector := make([]float32, testDim)
		fake.Vector(ids, vector)
		if int(got.N) != len(ids) || fmt.Sprint(got.Value) != fmt.Sprint(vector) {
			j.t.Fatalf("id %d: %d tokens and %v, want %d tokens and %v", want.ID, got.N, got.Value, len(ids), vector)
		}
	}
	if at != len(rows) {
		j.t.Fatalf("the shards have %d rows, want %d", len(rows), at)
	}
}

func (j *job) ids(s string) []int64 {
	j.t.Helper()
	ids, err := encode(j.tokenizer, s)
	if err != nil {
		j.t.Fatal(err)
	}
	return ids
}
