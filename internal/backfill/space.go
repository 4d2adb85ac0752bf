package backfill

import (
	"fmt"
	"os"
	"syscall"

	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/shard"
)

// Bytes of a document besides its vector and what it carries, at most: the store's index entry and its
// share of a record, and a shard's key, file, row and counts.
const (
	storeOverhead = 80
	shardOverhead = 90
)

// diskBytes is what vectors take in the store and documents in shards, at most. Shards hold
// ids and kept columns besides.
func diskBytes(vectors, documents int64, dims int) (store, shards int64) {
	vector := int64(4 * dims)
	return vectors * (vector + storeOverhead), documents * (vector + shardOverhead)
}

// checkSpace stops a run that cannot fit on its disks, before its first batch. What is left
// to write follows from the corpus's row counts, the share of distinct texts in the first window
// that is computed, and what the store and the shards already have. Later windows may
// repeat more texts, and shards compress, so a run is only warned where that does not fit,
// and stopped where not even half of it does.
func (r *run) checkSpace(w *window) error {
	embedded := w.embedded()
	distinct := map[key.Key]struct{}{}
	for _, d := range embedded {
		distinct[w.keys[d]] = struct{}{}
	}
	rows := float64(r.Corpus.Rows())
	share := func(n int) int64 { return int64(rows * float64(n) / float64(w.Len())) }
	stored, err := r.store.Size()
	if err != nil {
		return err
	}
	published, err := r.publishedRows()
	if err != nil {
		return err
	}
	have := stored / int64(4*r.Recipe.Dims) // more than the job's where others share the store
	store, shards := diskBytes(max(0, share(len(distinct))-have), max(0, share(len(embedded))-published), r.Recipe.Dims)
	storeDir := r.store.Dir()
	if sameDisk(storeDir, r.Out) {
		return r.fits(r.Out, store+shards)
	}
	if err := r.fits(storeDir, store); err != nil {
		return err
	}
	return r.fits(r.Out, shards)
}

// publishedRows is how many rows the shards of the recipe in OUT have.
func (r *run) publishedRows() (rows int64, err error) {
	parts, err := shard.List(r.fs, r.Out)
	if err != nil {
		return 0, outError(r.Out, err)
	}
	recipe := r.Recipe.Digest()
	for _, p := range parts {
		info, err := shard.Footer(r.fs, p.Path)
		if err != nil {
			return 0, outError(r.Out, err)
		}
		if info.State == shard.Good && info.Meta.Recipe.Digest() == recipe {
			rows += info.Rows
		}
	}
	return rows, nil
}

// fits compares what is needed in a folder with what is free there.
func (r *run) fits(dir string, need int64) error {
	usage, err := r.fs.GetDiskUsage(dir)
	if err != nil {
		return nil // not every file system says; then a full disk is told when it is full
	}
	free := int64(min(usage.AvailBytes, 1<<62))
	switch {
	case need/2 > free:
		return fault.New(fault.DiskFull, "about %s are needed and %s are free", inWords(need), inWords(free)).In(dir).
			Hinting("free some space, or put --store or --out on another disk, and run the same command again; this process has computed nothing yet")
	case need > free:
		r.Log.Warn("the disk may become full; the run would stop then, and go on after space is made",
			"folder", dir, "needed_bytes", need, "free_bytes", free)
	}
	return nil
}

// inWords is a size as people read it.
func inWords(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// sameDisk reports whether two folders lie on one file system; where nobody can tell, they do not, which
// needs less of each.
func sameDisk(a, b string) bool {
	device := func(dir string) (uint64, bool) {
		info, err := os.Stat(dir)
		if err != nil {
			return 0, false
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, false
		}
		return uint64(s.Dev), true
	}
	x, ok := device(a)
	y, also := device(b)
	return ok && also && x == y
}
