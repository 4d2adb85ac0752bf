package backfill

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/shard"
	"localembed/internal/tokenize"
)

func encode(t *tokenize.Tokenizer, s string) ([]int64, error) {
	var texts column.Arena
	texts.Append([]byte(s))
	var tokens tokenize.Tokens
	if err := t.Encode(context.Background(), &texts, []int32{0}, &tokens); err != nil {
		return nil, err
	}
	var ids []int64
	for _, id := range tokens.IDs {
		ids = append(ids, int64(id))
	}
	return ids, nil
}

// fiveWindows is a corpus of two files and more than five windows, with
// duplicates in a window and across windows, and bad rows.
func fiveWindows(t *testing.T) (folder string, rows []row) {
	folder = filepath.Join(t.TempDir(), "corpus")
	a, b := numbered(0, 130), numbered(130, 170)
	a[3].Text, a[70].Text, b[5].Text = nil, str(" \t"), str("")
	writeCorpus(t, filepath.Join(folder, "a.parquet"), a)
	writeCorpus(t, filepath.Join(folder, "b.parquet"), b)
	return folder, append(a, b...)
}

func distinctTexts(rows []row) int64 {
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Text != nil && strings.TrimSpace(*r.Text) != "" {
			seen[*r.Text] = true
		}
	}
	return int64(len(seen))
}

func TestEveryDocumentGetsItsVector(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	r := j.run()
	j.check(rows)
	unique := distinctTexts(rows)
	if r.RowsIn != 300 || r.DocumentsIn != 300 || r.RowsEmbedded != 297 || r.UniqueTexts != unique || r.VectorsComputed != unique || r.VectorsReused != 0 {
		t.Errorf("report counts %+v, want 300 rows, 297 embedded, %d unique and computed", r, unique)
	}
	if r.RowsDeadLettered["total"] != 3 || r.RowsDeadLettered["null_text"] != 1 || r.RowsDeadLettered["empty_text"] != 2 || r.RowsDeadLettered["too_long"] != 0 {
		t.Errorf("dead letters %v", r.RowsDeadLettered)
	}
	runs := int64(0)
	for _, d := range j.ran {
		runs += d.Runs()
		if !d.Closed() {
			t.Errorf("device %s stays open", d.Name())
		}
	}
	if runs != r.Batches {
		t.Errorf("%d batches ran, the report says %d", runs, r.Batches)
	}
	var saved Report
	b, err := os.ReadFile(filepath.Join(j.out, "report.json"))
	if err != nil || json.Unmarshal(b, &saved) != nil || saved.UniqueTexts != unique {
		t.Errorf("report.json: %v, %+v", err, saved)
	}
	type failed struct {
		ID    int64   `parquet:"id"`
		Class string  `parquet:"class"`
		Text  *string `parquet:"text,optional"`
	}
	letters, err := parquet.ReadFile[failed](shard.FailuresPath(j.vfs(), j.out, 0))
	if err != nil || len(letters) != 1 || letters[0].ID != 3 || letters[0].Class != "null_text" || letters[0].Text != nil {
		t.Errorf("dead letters of window 0: %v, %+v", err, letters)
	}
	letters, err = parquet.ReadFile[failed](shard.FailuresPath(j.vfs(), j.out, 1))
	if err != nil || len(letters) != 1 || letters[0].ID != 70 || *letters[0].Text != " \t" {
		t.Errorf("dead letters of window 1: %v, %+v", err, letters)
	}
}

func TestAFinishedJobIsLeftAlone(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	first := j.run()
	times := func() map[string]time.Time {
		at := map[string]time.Time{}
		for name := range j.sums() {
			info, err := os.Stat(j.out + name)
			if err != nil {
				t.Fatal(err)
			}
			at[name] = info.ModTime()
		}
		return at
	}
	before := times()
	j.closed = true
	r := j.run()
	j.check(rows)
	if !maps.Equal(before, times()) {
		t.Error("a file was written again")
	}
	if r.VectorsComputed != 0 || r.ShardsWritten != 0 || r.Batches != 0 {
		t.Errorf("the second run computed %d vectors in %d batches and wrote %d shards", r.VectorsComputed, r.Batches, r.ShardsWritten)
	}
	if r.RowsEmbedded != first.RowsEmbedded || r.UniqueTexts != first.UniqueTexts || r.TruncatedRows != first.TruncatedRows || r.VectorsReused != first.UniqueTexts {
		t.Errorf("the second report differs: %+v, first %+v", r, first)
	}
}

func TestADeletedShardComesBackFromTheStore(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	want := j.sums()
	for _, name := range []string{shard.Name(2), "failures/" + shard.Name(0)} {
		if err := os.Remove(filepath.Join(j.out, name)); err != nil {
			t.Fatal(err)
		}
	}
	j.closed = true
	if r := j.run(); r.ShardsWritten != 2 {
		t.Errorf("%d shards were written, want 2", r.ShardsWritten)
	}
	if !maps.Equal(want, j.sums()) {
		t.Error("the shards differ")
	}
}

func TestADeletedStoreComesBackFromTheShards(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	want := j.sums()
	if err := os.RemoveAll(StateDir(j.out)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(j.out, shard.Name(1))); err != nil {
		t.Fatal(err)
	}
	// Only the vectors that stood in the deleted shard alone are computed.
	if r := j.run(); r.VectorsComputed == 0 || r.VectorsComputed > 50 || r.ShardsWritten != 1 {
		t.Errorf("%d vectors were computed and %d shards written", r.VectorsComputed, r.ShardsWritten)
	}
	if !maps.Equal(want, j.sums()) {
		t.Error("the shards differ")
	}
	if err := os.RemoveAll(StateDir(j.out)); err != nil {
		t.Fatal(err)
	}
	j.closed = true
	j.run()
}

func TestOneChangedTextIsOneVector(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	rows[100].Text = str("a text that was not there before")
	writeCorpus(t, filepath.Join(folder, "a.parquet"), rows[:130])
	r := j.run()
	j.check(rows)
	if r.VectorsComputed != 1 || r.ShardsWritten != 1 {
		t.Errorf("%d vectors computed and %d shards written, want 1 and 1", r.VectorsComputed, r.ShardsWritten)
	}
}

func TestAnotherRecipeSharesNothing(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.store = filepath.Join(t.TempDir(), "store")
	j.run()
	j.model, j.out = "another", filepath.Join(t.TempDir(), "out")
	r := j.run()
	if r.VectorsComputed != distinctTexts(rows) {
		t.Errorf("%d vectors computed, want all %d", r.VectorsComputed, distinctTexts(rows))
	}
}

func TestTheStoreServesOtherOrdersAndWindows(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.store = filepath.Join(t.TempDir(), "store")
	j.run()
	j.out, j.window = filepath.Join(t.TempDir(), "out"), 33
	j.corpus = []string{filepath.Join(folder, "b.parquet"), filepath.Join(folder, "a.parquet")}
	j.closed = true
	r := j.run()
	j.check(append(slices.Clone(rows[130:]), rows[:130]...))
	if r.VectorsComputed != 0 || r.VectorsReused != distinctTexts(rows) {
		t.Errorf("%d vectors computed and %d reused", r.VectorsComputed, r.VectorsReused)
	}
}

func TestAFileInFrontComputesOnlyItsTexts(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	front := []row{{-1, str("a first new text")}, {-2, rows[0].Text}, {-3, str("a second new text")}}
	writeCorpus(t, filepath.Join(folder, "0.parquet"), front)
	r := j.run()
	j.check(append(front, rows...))
	if r.VectorsComputed != 2 {
		t.Errorf("%d vectors computed, want 2", r.VectorsComputed)
	}
	// And away again: nothing is computed, and no part is left behind.
	if err := os.Remove(filepath.Join(folder, "0.parquet")); err != nil {
		t.Fatal(err)
	}
	j.closed = true
	j.run()
	j.check(rows)
}

func TestAShorterCorpusAsksBeforeItDeletes(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	if err := os.Remove(filepath.Join(folder, "b.parquet")); err != nil {
		t.Fatal(err)
	}
	before := j.sums()
	_, err := j.try(context.Background())
	if !fault.Is(err, fault.Usage) || !strings.Contains(fault.Of(err).Hint, "--yes") {
		t.Fatalf("error is %v, want a usage error with --yes", err)
	}
	if !maps.Equal(before, j.sums()) {
		t.Fatal("the run that was refused changed something")
	}
	j.yes = true
	j.run()
	j.check(rows[:130])
}

func TestLimitMayGrow(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.limit = 70
	j.run()
	j.check(rows[:70])
	j.limit = 120
	r := j.run()
	j.check(rows[:120])
	if want := distinctTexts(rows[:120]) - distinctTexts(rows[:70]); r.VectorsComputed != want {
		t.Errorf("%d vectors computed, want %d", r.VectorsComputed, want)
	}
	j.limit = 100
	if _, err := j.try(context.Background()); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "--limit, which may only grow, was 120 and is 100") {
		t.Errorf("a smaller limit gives %v", err)
	}
	j.limit = 0
	j.run()
	j.check(rows)
}

func TestOtherFlagsAreRefused(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	j.window, j.onLong = 60, "error"
	_, err := j.try(context.Background())
	for _, want := range []string{"--window was 50 and is 60", `--on-long was "truncate" and is "error"`} {
		if !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	if !strings.Contains(fault.Of(err).Hint, "--store") {
		t.Errorf("hint %q does not name --store", fault.Of(err).Hint)
	}
}

func TestAForeignFolderIsRefused(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	if err := os.MkdirAll(j.out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.out, "precious.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := j.try(context.Background()); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "precious.txt") {
		t.Errorf("error is %v", err)
	}
}

func TestASecondRunIsToldWho(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	other := newJob(t, folder)
	var inside error
	j.before = func([]int64, int, int, []int32) error {
		if inside == nil {
			other.out = j.out
			_, inside = other.try(context.Background())
		}
		return nil
	}
	j.devices = 1
	j.run()
	if !fault.Is(inside, fault.StoreLocked) || !strings.Contains(inside.Error(), "process ") {
		t.Errorf("the second run got %v", inside)
	}
}

func TestLongTextsAreCutOrLeftOut(t *testing.T) {
	rows := numbered(0, 120)
	long := str("%s", strings.Repeat("far too long ", 100))
	rows[10].Text, rows[90].Text = long, long
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeCorpus(t, path, rows)
	j := newJob(t, path)
	r := j.run()
	j.check(rows)
	cut := r.TruncatedRows
	if cut < 2 {
		t.Fatalf("%d rows truncated, want at least the 2 long ones", cut)
	}
	// The store holds the cut texts, but they are left out all the same.
	for _, store := range []string{filepath.Join(StateDir(j.out), "store"), ""} {
		k := newJob(t, path)
		k.onLong, k.store = "error", store
		r := k.run()
		if r.RowsDeadLettered["too_long"] != cut || r.RowsEmbedded != 120-cut || r.TruncatedRows != 0 {
			t.Errorf("store %q: dead letters %v, embedded %d, truncated %d; want %d too long", store, r.RowsDeadLettered, r.RowsEmbedded, r.TruncatedRows, cut)
		}
		k.closed = true
		if r := k.run(); r.ShardsWritten != 0 || r.RowsDeadLettered["too_long"] != cut {
			t.Errorf("store %q: the second run wrote %d shards, dead letters %v", store, r.ShardsWritten, r.RowsDeadLettered)
		}
	}
}

func TestAnEmptyCorpusGivesOneEmptyShard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeCorpus(t, path, nil)
	j := newJob(t, path)
	j.closed = true
	for range 2 {
		r := j.run()
		if len(j.sums()) != 1 || len(j.rows()) != 0 || r.DocumentsIn != 0 {
			t.Errorf("parts %v, report %+v", j.sums(), r)
		}
	}
}

func TestAWrongColumnStopsTheRun(t *testing.T) {
	rows := numbered(0, 40)
	for i := range 21 {
		rows[i].Text = str(" ")
	}
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeCorpus(t, path, rows)
	j := newJob(t, path)
	j.failed = 1
	if _, err := j.try(context.Background()); !fault.Is(err, fault.TooManyFailures) || !strings.Contains(err.Error(), "21 of the first 40") {
		t.Errorf("error is %v", err)
	}
	j.failed = 100
	j.run()
	j.check(rows)
}

// Dead letters belong to a shard by its digest: stale or foreign ones are noticed.
func TestDeadLettersThatDoNotFitAreReplaced(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	want := j.sums()
	failures := filepath.Join(j.out, shard.FailuresDir)
	b, err := os.ReadFile(filepath.Join(failures, shard.Name(0)))
	if err != nil {
		t.Fatal(err)
	}
	// A window with other dead letters, one with none, and one that is not there.
	for _, index := range []int{1, 4, 17} {
		if err := os.WriteFile(filepath.Join(failures, shard.Name(index)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j.closed = true
	j.run()
	if got := j.sums(); !maps.Equal(want, got) {
		t.Errorf("files are\n%v\nwant\n%v", got, want)
	}
}

func TestAForeignPartIsNotReplaced(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	path := filepath.Join(j.out, shard.Name(2))
	writeCorpus(t, path, numbered(0, 3))
	if _, err := j.try(context.Background()); !fault.Is(err, fault.Usage) || fault.Of(err).File != path {
		t.Errorf("error is %v", err)
	}
}
