package backfill

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localembed/internal/onnx/fake"
	"localembed/internal/shard"
)

// poisoned is a job whose marked texts no device could embed.
func poisoned(t *testing.T) (j *job, rows []row, id int64) {
	folder, rows, id := marked(t)
	j = newJob(t, folder)
	j.faults = fake.Faults{Poison: id}
	if r := j.run(); r.RowsDeadLettered[deviceFailed] != 5 {
		t.Fatalf("dead letters %v", r.RowsDeadLettered)
	}
	return j, rows, id
}

func (j *job) loseStore() {
	j.t.Helper()
	if err := os.RemoveAll(StoreDir(j.out, j.store)); err != nil {
		j.t.Fatal(err)
	}
}

// What devices could not embed is known from the dead letters where the store is lost: none
// of it is tried again, and attempts and messages stay, until it is to be tried again.
func TestALostStoreRecallsFailures(t *testing.T) {
	j, rows, _ := poisoned(t)
	want := j.sums()
	j.loseStore()
	plan := j.plan(true)
	j.closed = true
	r := j.run()
	plan.compare(t, r)
	if r.RowsDeadLettered[deviceFailed] != 5 || r.ShardsWritten != 0 || !maps.Equal(j.sums(), want) {
		t.Errorf("%v, %d shards", r.RowsDeadLettered, r.ShardsWritten)
	}

	j.loseStore()
	j.closed, j.retry, j.faults = false, true, fake.Faults{}
	plan = j.plan(true)
	r = j.run()
	plan.compare(t, r)
	j.check(rows)
	if r.VectorsComputed != 3 {
		t.Errorf("with retry: %d vectors", r.VectorsComputed)
	}
}

// Dead letters are published before their shard: a process may die between the two.
func TestFailuresAreRecalledWithoutTheirShard(t *testing.T) {
	j, rows, id := poisoned(t)
	want := j.sums()
	j.loseStore()
	if err := os.Remove(shard.Path(j.vfs(), j.out, 0)); err != nil {
		t.Fatal(err)
	}
	j.before = func(ids []int64, _, _ int, _ []int32) error {
		if slices.Contains(ids, id) {
			t.Error("a text that failed is tried again")
		}
		return nil
	}
	if r := j.run(); r.VectorsComputed == 0 || !maps.Equal(j.sums(), want) {
		t.Errorf("%d vectors were computed, or the shards differ", r.VectorsComputed)
	}
	j.checkBut(rows, "zebra")
}

// A vector says more than a dead letter: the text was tried again since. Damaged dead letters
// say nothing.
func TestOldAndDamagedDeadLetters(t *testing.T) {
	j, rows, _ := poisoned(t)
	path := shard.FailuresPath(j.vfs(), j.out, 0)
	old := j.read(path)
	damaged := slices.Clone(old)
	damaged[60] ^= 1
	j.retry, j.faults = true, fake.Faults{}
	j.run()
	j.check(rows)
	j.retry = false
	for name, letters := range map[string][]byte{"old": old, "damaged": damaged} {
		if err := os.WriteFile(path, letters, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "damaged" { // and the vectors are gone as well
			if err := os.Remove(filepath.Join(j.out, shard.Name(0))); err != nil {
				t.Fatal(err)
			}
		}
		j.loseStore()
		j.closed = name == "old"
		plan := j.plan(true)
		r := j.run()
		plan.compare(t, r)
		j.check(rows)
		if r.RowsDeadLettered["total"] != 3 {
			t.Errorf("%s: %v", name, r.RowsDeadLettered)
		}
	}
}

// Of a text over 64 KiB the letter holds the first part only, which is another text.
func TestALongTextIsNotRecalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "corpus.parquet")
	rows := numbered(0, 10)
	long := "a zebra " + strings.Repeat("and more ", shard.MaxFailedText/8)
	rows[3].Text = &long
	writeCorpus(t, path, rows)
	j := newJob(t, path)
	j.faults = fake.Faults{Poison: j.ids("zebra")[1]}
	if r := j.run(); r.RowsDeadLettered[deviceFailed] != 1 {
		t.Fatalf("dead letters %v", r.RowsDeadLettered)
	}
	j.loseStore()
	rows[3].Text = str("%s", long[:shard.MaxFailedText])
	writeCorpus(t, path, rows)
	j.faults = fake.Faults{}
	j.run()
	j.check(rows)
}

// A store in which another job has a vector of the text knows better.
func TestAVectorOfAnotherJobWins(t *testing.T) {
	j, rows, _ := poisoned(t)
	other := newJob(t, j.corpus...)
	other.run()
	j.store, j.closed = StoreDir(other.out, ""), true
	plan := j.plan(true)
	plan.compare(t, j.run())
	j.check(rows)
}
