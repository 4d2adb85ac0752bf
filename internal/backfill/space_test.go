package backfill

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
)

// almostFull is a file system that says how much is free.
type almostFull struct {
	vfs.FS
	free uint64
}

func (a almostFull) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: a.free}, nil
}

// A run that cannot fit says so with both numbers before it computes anything; one that is
// done, or fits, runs whatever is free.
func TestARunThatCannotFitStopsBeforeItsFirstBatch(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.fs, j.closed = almostFull{vfs.Default, 10_000}, true
	_, err := j.try(context.Background())
	e := fault.Of(err)
	if e == nil || e.Class != fault.DiskFull || !strings.Contains(e.Message, "needed") || !strings.Contains(e.Message, "free") || e.File == "" {
		t.Fatalf("error is %v", err)
	}
	store, shards := diskBytes(distinctTexts(rows), int64(len(rows)), testDim)
	j.fs, j.closed = almostFull{vfs.Default, uint64(store + shards)}, false
	j.run()
	j.check(rows)
	j.fs, j.closed = almostFull{vfs.Default, 0}, true
	j.run()
}
