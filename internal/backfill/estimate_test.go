package backfill

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"localembed/internal/fault"
	"localembed/internal/shard"
)

func (j *job) plan(exact bool) *Estimate {
	j.t.Helper()
	e, err := Plan(context.Background(), j.options(context.Background()), exact)
	if err != nil {
		j.t.Fatal(err)
	}
	return e
}

// compare fails the test where a plan said something else than the run did.
func (e *Estimate) compare(t *testing.T, r *Report) {
	t.Helper()
	for _, c := range []struct {
		name       string
		plan, real int64
	}{
		{"rows_in", e.RowsIn, r.RowsIn}, {"documents_in", e.DocumentsIn, r.DocumentsIn},
		{"rows_embedded", e.RowsEmbedded, r.RowsEmbedded}, {"unique_texts", e.UniqueTexts, r.UniqueTexts},
		{"truncated_rows", e.TruncatedRows, r.TruncatedRows}, {"vectors_computed", e.VectorsComputed, r.VectorsComputed},
		{"vectors_reused", e.VectorsReused, r.VectorsReused}, {"tokens", e.Tokens, r.Tokens},
		{"padded_tokens", e.PaddedTokens, r.PaddedTokens}, {"batches", e.Batches, r.Batches},
		{"dead letters", e.RowsDeadLettered["total"], r.RowsDeadLettered["total"]},
		{"duplicates", e.Duplicates, r.RowsEmbedded - r.UniqueTexts},
	} {
		if c.plan != c.real {
			t.Errorf("%s: the plan says %d, the run %d", c.name, c.plan, c.real)
		}
	}
}

func TestThePlanIsWhatTheRunDoes(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.limits = padded
	fresh := j.plan(true)
	if _, err := os.Stat(j.out); err == nil {
		t.Error("the plan wrote something")
	}
	fresh.compare(t, j.run())
	if !fresh.Exact || fresh.Done != 0 || fresh.Shards != 6 {
		t.Errorf("exact %t, done %d, shards %d", fresh.Exact, fresh.Done, fresh.Shards)
	}
	if e := j.plan(true); e.Done != 297 || e.VectorsComputed != 0 || e.Batches != 0 || e.UniqueTexts != fresh.UniqueTexts || e.TruncatedRows != fresh.TruncatedRows {
		t.Errorf("after the run the plan says %+v", e)
	}
	// One text changes and the store is lost: the shards still tell what is done.
	rows[60].Text = str("a text that was not there before")
	writeCorpus(t, filepath.Join(folder, "a.parquet"), rows[:130])
	if err := os.RemoveAll(StateDir(j.out)); err != nil {
		t.Fatal(err)
	}
	e := j.plan(true)
	if e.VectorsComputed != 1 {
		t.Errorf("the plan computes %d vectors, want 1", e.VectorsComputed)
	}
	e.compare(t, j.run())
}

func TestAPlanRefusesWhatTheRunWould(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	if err := os.MkdirAll(j.out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.out, "precious.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Plan(context.Background(), j.options(context.Background()), true); !fault.Is(err, fault.Usage) {
		t.Errorf("error is %v", err)
	}
}

// A sample holds all documents of a chosen text, so that its estimate of duplicates has
// no bias; its error covers the truth.
func TestASampleIsCloseToTheTruth(t *testing.T) {
	old := exactRows
	exactRows = 400
	t.Cleanup(func() { exactRows = old })
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeCorpus(t, path, numbered(0, 4000))
	j := newJob(t, path)
	j.window = 1000
	exact, sample := j.plan(true), j.plan(false)
	if sample.Exact || sample.Sampled > 800 || sample.RowsEmbedded != exact.RowsEmbedded {
		t.Fatalf("the sample is %+v", sample)
	}
	near := func(name string, got, want int64, within float64) {
		if off := float64(got)/float64(want) - 1; off > within || off < -within {
			t.Errorf("%s: %d from the sample, %d in truth: off by %.1f %%", name, got, want, 100*off)
		}
	}
	near("tokens", sample.Tokens, exact.Tokens, 2*sample.TokenError)
	near("unique texts", sample.UniqueTexts, exact.UniqueTexts, 0.2)
	near("batches", sample.Batches, exact.Batches, 0.2)
}

// With the store lost, what a damaged shard still gives is the same in a plan as in a run.
func TestAPlanOverADamagedShard(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	j.loseStore()
	path := shard.Path(j.vfs(), j.out, 2)
	b := j.read(path)
	b[1000] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	plan := j.plan(true)
	if plan.VectorsComputed == 0 {
		t.Error("nothing of the shard has to be computed")
	}
	plan.compare(t, j.run())
	j.check(rows)
}
