package backfill

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// verified is what Verify says of a job's output.
func (j *job) verified(args ...string) (*Verified, []string) {
	j.t.Helper()
	job, err := ReadJob(vfs.Default, j.out)
	if err != nil || job == nil {
		j.t.Fatalf("job %v, %v", job, err)
	}
	if len(args) == 0 {
		args = job.Corpus
	}
	c, err := corpus.Open(context.Background(), corpus.Options{Args: args, OutDir: j.out, WindowDocs: j.window, WindowBytes: 1 << 30})
	if err != nil {
		j.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var wrong []string
	v, err := Verify(context.Background(), vfs.Default, j.out, j.store, job, c, func(e *fault.Error) {
		if e.Hint == "" || e.File == "" {
			j.t.Errorf("%v has no place or no hint", e)
		}
		wrong = append(wrong, e.Error())
	})
	if err != nil {
		j.t.Fatalf("verify: %v", err)
	}
	return v, wrong
}

// Whatever is damaged or changed is found, and the same command mends it.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	flip := func(path string, at func(size int) int) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[at(len(b))] ^= 1
		return os.WriteFile(path, b, 0o600)
	}
	part := func(j *job, n int) string { return filepath.Join(j.out, shard.Name(n)) }
	letters := func(j *job, n int) string { return filepath.Join(j.out, shard.FailuresDir, shard.Name(n)) }
	for name, c := range map[string]struct {
		damage func(j *job) error
		want   string
	}{
		"nothing":        {func(*job) error { return nil }, ""},
		"lost shard":     {func(j *job) error { return os.Remove(part(j, 1)) }, "there is no such file"},
		"cut shard":      {func(j *job) error { return os.Truncate(part(j, 1), 500) }, "does not end as a Parquet file"},
		"changed page":   {func(j *job) error { return flip(part(j, 1), func(int) int { return 1000 }) }, "damaged"},
		"another window": {func(j *job) error { return os.Rename(part(j, 1), part(j, 2)) }, "not made of these documents"},
		"surplus part":   {func(j *job) error { return os.Link(part(j, 1), part(j, 17)) }, "behind the last one"},
		"lost letters":   {func(j *job) error { return os.Remove(letters(j, 0)) }, "there are no dead letters"},
		"other letters":  {func(j *job) error { return os.Rename(letters(j, 1), letters(j, 0)) }, "is of no document of this window"},
		"letters of another recipe": {func(j *job) error {
			other := newJob(t, j.corpus...)
			other.model = "another"
			other.run()
			return os.Rename(letters(other, 0), letters(j, 0))
		}, "belong to another shard"},
		"damaged letters": {func(j *job) error { return flip(letters(j, 0), func(int) int { return 60 }) },
			"damaged"},
		"damaged store": {func(j *job) error { damageStore(t, StoreDir(j.out, ""), 100); return nil }, "does not match its checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, rows := fiveWindows(t)
			j := newJob(t, folder)
			j.run()
			if err := c.damage(j); err != nil {
				t.Fatal(err)
			}
			v, wrong := j.verified()
			if (c.want == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, "\n"), c.want) {
				t.Fatalf("found %q, want %q", wrong, c.want)
			}
			if c.want == "" && (v.Documents != 300 || v.RowsEmbedded != 297 || v.RowsDeadLettered != 3 || v.Shards != 6 || v.StoreVectors != distinctTexts(rows)) {
				t.Errorf("counts %+v", v)
			}
		})
	}
}

// Changed texts and ids are found by row.
func TestVerifyComparesRowsWithTheCorpus(t *testing.T) {
	for name, c := range map[string]struct {
		change func(rows []row)
		want   string
	}{
		"text":     {func(rows []row) { rows[60].Text = str("another text") }, "column content_hash"},
		"id":       {func(rows []row) { rows[60].ID = 4711 }, `column id: "60", and the corpus says "4711"`},
		"now null": {func(rows []row) { rows[60].Text = nil }, "no dead letter"},
		"now text": {func(rows []row) { rows[3].Text = str("now there") }, "not made of these documents"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := numbered(0, 130)
			rows[3].Text, rows[70].Text = nil, str(" ")
			path := filepath.Join(t.TempDir(), "corpus.parquet")
			writeCorpus(t, path, rows)
			j := newJob(t, path)
			j.run()
			if _, wrong := j.verified(); len(wrong) > 0 {
				t.Fatalf("nothing changed, and it found %q", wrong)
			}
			c.change(rows)
			writeCorpus(t, path, rows)
			if _, wrong := j.verified(); !strings.Contains(strings.Join(wrong, "\n"), c.want) {
				t.Errorf("found %q, want %q", wrong, c.want)
			}
			j.run()
			if _, wrong := j.verified(); len(wrong) > 0 {
				t.Errorf("after another run it found %q", wrong)
			}
		})
	}
}
