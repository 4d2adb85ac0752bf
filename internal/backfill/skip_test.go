package backfill

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/fault"
)

// damagedMiddle is a corpus of three files, of which the second is whole to its
// last row group, where a page is damaged. It returns what repairs it.
func damagedMiddle(t *testing.T) (folder string, good, all []row, repair func()) {
	folder = filepath.Join(t.TempDir(), "corpus")
	a, b, c := numbered(0, 120), numbered(120, 110), numbered(230, 90)
	writeCorpus(t, filepath.Join(folder, "a.parquet"), a)
	writeCorpus(t, filepath.Join(folder, "c.parquet"), c)
	path := filepath.Join(folder, "b.parquet")
	if err := parquet.WriteFile(path, b, parquet.MaxRowsPerRowGroup(40)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	pq, err := parquet.OpenFile(f, int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	m := pq.Metadata().RowGroups[2].Columns[1].MetaData
	broken := append([]byte{}, whole...)
	broken[m.DataPageOffset+m.TotalCompressedSize/2] ^= 0x10
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(broken)
	good = append(append(good, a...), c...)
	return folder, good, append(append(append(all, a...), b...), c...), func() { write(whole) }
}

// A damaged file is left out whole, the report lists it, and once it is repaired the same
// command embeds it and computes nothing twice.
func TestBadFileIsLeftOutUntilItIsRepaired(t *testing.T) {
	folder, good, all, repair := damagedMiddle(t)
	if _, err := newJob(t, folder).try(context.Background()); !fault.Is(err, fault.CorruptFile) {
		t.Fatalf("without leave to skip: %v", err)
	}
	j := newJob(t, folder)
	j.skip = true
	r := j.run()
	j.check(good)
	if r.RowsIn != int64(len(good)) || r.FilesSkipped != 1 || len(r.SkippedFiles) != 1 || !r.LeftOut() || r.DeadLetters() != 0 {
		t.Fatalf("report %+v", r)
	}
	s := r.SkippedFiles[0]
	if s.File != filepath.Join(folder, "b.parquet") || s.Class != fault.CorruptFile || s.RowGroup == nil || *s.RowGroup != 2 || s.Message == "" {
		t.Errorf("skipped %+v", s)
	}
	var saved struct {
		Skipped []map[string]any `json:"skipped_files"`
	}
	if b, err := os.ReadFile(filepath.Join(j.out, reportFile)); err != nil || json.Unmarshal(b, &saved) != nil || saved.Skipped[0]["class"] != "corrupt_file" {
		t.Errorf("report.json lists %v (%v)", saved.Skipped, err)
	}
	e, err := Plan(context.Background(), j.options(context.Background()), true)
	if err != nil || e.FilesSkipped != 1 || e.RowsIn != r.RowsIn || e.VectorsComputed != 0 {
		t.Errorf("plan says %+v, %v", e, err)
	}

	repair()
	j.skip = false // a later run may say otherwise
	again := j.run()
	j.check(all)
	if again.VectorsComputed != distinctTexts(all)-distinctTexts(good) || again.FilesSkipped != 0 {
		t.Errorf("%d vectors were computed, %d files skipped", again.VectorsComputed, again.FilesSkipped)
	}
}

// Runs that are stopped again and again leave out the same file at the same place.
func TestStoppedRunsLeaveOutTheSame(t *testing.T) {
	folder, good, _, _ := damagedMiddle(t)
	undisturbed := newJob(t, folder)
	undisturbed.skip, undisturbed.window, undisturbed.together = true, 20, true
	undisturbed.run()
	j := newJob(t, folder)
	j.skip, j.window, j.together = true, 20, true
	for stop := int64(1); ; stop++ {
		var runs atomic.Int64
		j.before = func([]int64, int, int, []int32) error {
			if runs.Add(1) > stop {
				return errors.New("enough")
			}
			return nil
		}
		if _, err := j.try(context.Background()); err == nil {
			break
		}
		if stop > 100 {
			t.Fatal("no end")
		}
	}
	if got, want := j.sums(), undisturbed.sums(); !maps.Equal(got, want) {
		t.Errorf("the shards differ:\n%v\n%v", got, want)
	}
	if rows := j.rows(); len(rows) != len(good) {
		t.Errorf("%d rows, want %d", len(rows), len(good))
	}
}
