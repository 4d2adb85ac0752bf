package backfill

import (
	"io"
	"log/slog"
	"testing"

	"localembed/internal/checkpoint"
)

// Processes that die without a commit between them make the next one careful; one that
// died after a commit is the first in a row; one that ends in good order does not count.
func TestDeathsInARow(t *testing.T) {
	store, err := checkpoint.Open(t.TempDir()+"/store", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	process := func(commits, ends bool) (on bool) {
		var c careful
		if err := c.begin(store, log); err != nil {
			t.Fatal(err)
		}
		if commits {
			if err := c.alive(store); err != nil {
				t.Fatal(err)
			}
		}
		if ends {
			if err := c.end(store); err != nil {
				t.Fatal(err)
			}
		}
		return c.on
	}
	for i, p := range []struct{ commits, ends, careful bool }{
		{false, false, false}, {true, false, false}, // the second dies after a commit
		{false, false, false}, {false, false, true}, // it and the third are two in a row
		{false, true, true}, {true, true, true}, // these end: nothing is added, a commit clears
		{false, false, false}, {false, false, false}, {false, false, true},
	} {
		if on := process(p.commits, p.ends); on != p.careful {
			t.Errorf("process %d: careful %v, want %v", i+1, on, p.careful)
		}
	}
}
