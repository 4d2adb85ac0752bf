package backfill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process that wrote its progress and then neither ended it nor holds the lock is dead.
func TestStatusTellsTheDeadFromTheEnded(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	if s, err := ReadStatus(j.out); err != nil || s.State != "finished" || s.Report == nil || s.Progress.RowsDone != 300 {
		t.Fatalf("status %+v, %v", s, err)
	}
	path := filepath.Join(StateDir(j.out), progressFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dead := strings.Replace(string(b), `"over":true`, `"over":false`, 1)
	if err := os.WriteFile(path, []byte(dead), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadStatus(j.out); err != nil || s.State != "died" {
		t.Errorf("status %+v, %v", s, err)
	}
	// So is one that did not come as far.
	for _, path := range []string{path, filepath.Join(j.out, reportFile)} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := ReadStatus(j.out); err != nil || s.State != "died" {
		t.Errorf("without progress and report: status %+v, %v", s, err)
	}
}
