package backfill

import (
	"context"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/fault"
	"localembed/internal/onnx/fake"
	"localembed/internal/shard"
)

// marked puts a word into some texts of the corpus of fiveWindows, one of them twice and
// in two windows, and gives the word's token id.
func marked(t *testing.T) (folder string, rows []row, id int64) {
	folder, rows = fiveWindows(t)
	for _, at := range []int{10, 60, 61, 200} {
		rows[at].Text = str("a zebra in row %s", strings.Repeat("and row ", at%7))
	}
	rows[299].Text = rows[10].Text
	writeCorpus(t, folder+"/a.parquet", rows[:130])
	writeCorpus(t, folder+"/b.parquet", rows[130:])
	return folder, rows, newJob(t).ids("zebra")[1]
}

// A letter is what a dead letter says.
type letter struct {
	ID       int64   `parquet:"id"`
	Class    string  `parquet:"class"`
	Attempts int32   `parquet:"attempts"`
	Message  string  `parquet:"message"`
	Text     *string `parquet:"text,optional"`
}

func (j *job) letters() map[int64]letter {
	j.t.Helper()
	all := map[int64]letter{}
	parts, err := shard.List(j.vfs(), j.out+"/"+shard.FailuresDir)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, p := range parts {
		some, err := parquet.ReadFile[letter](p.Path)
		if err != nil {
			j.t.Fatal(err)
		}
		for _, l := range some {
			all[l.ID] = l
		}
	}
	return all
}

// What a fault makes of the marked texts: dead letters of a class after so many
// attempts, with their text, and all neighbours embedded.
func TestDeadLettersOfDevices(t *testing.T) {
	for name, c := range map[string]struct {
		faults   func(id int64) fake.Faults
		class    string
		attempts int32
	}{
		"poison": {func(id int64) fake.Faults { return fake.Faults{Poison: id} }, deviceFailed, 5},
		"nan":    {func(id int64) fake.Faults { return fake.Faults{NaN: id} }, nonFinite, 2},
	} {
		t.Run(name, func(t *testing.T) {
			folder, rows, id := marked(t)
			j := newJob(t, folder)
			j.faults = c.faults(id)
			r := j.run()
			j.checkBut(rows, "zebra")
			if n := r.RowsDeadLettered[c.class]; n != 5 || r.RowsDeadLettered["total"] != 8 || r.Splits == 0 || r.Retries == 0 {
				t.Errorf("%d dead letters, %v; %d splits, %d retries", n, r.RowsDeadLettered, r.Splits, r.Retries)
			}
			letters := j.letters()
			for _, at := range []int64{10, 60, 61, 200, 299} {
				l := letters[at]
				if l.Class != c.class || l.Attempts != c.attempts || l.Text == nil || *l.Text != *rows[at].Text || !strings.Contains(l.Message, "fake:") {
					t.Errorf("row %d: %+v", at, l)
				}
			}
			before := j.sums()

			// What is dead stays dead, without a device.
			j.closed = true
			r = j.run()
			if r.RowsDeadLettered[c.class] != 5 || r.ShardsWritten != 0 || !maps.Equal(before, j.sums()) {
				t.Errorf("the second run: %v, %d shards", r.RowsDeadLettered, r.ShardsWritten)
			}

			// Unless it is to be tried again.
			j.closed, j.retry, j.faults = false, true, fake.Faults{}
			r = j.run()
			j.check(rows)
			if r.VectorsComputed != 3 || r.ShardsWritten != 4 || r.RowsDeadLettered["total"] != 3 {
				t.Errorf("with retry: %d vectors, %d shards, %v", r.VectorsComputed, r.ShardsWritten, r.RowsDeadLettered)
			}
			j.retry, j.closed = false, true
			if r = j.run(); r.ShardsWritten != 0 || r.RowsDeadLettered["total"] != 3 {
				t.Errorf("after retry: %d shards, %v", r.ShardsWritten, r.RowsDeadLettered)
			}
		})
	}
}

func TestATransientFaultIsTriedAgain(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	want, _ := undisturbed(t, folder, func(j *job) { j.together = true })
	j.together, j.faults = true, fake.Faults{Transient: 3}
	r := j.run()
	if r.Retries == 0 || r.Splits != 0 || r.RowsDeadLettered["total"] != 3 || !maps.Equal(want, j.sums()) {
		t.Errorf("%d retries, %d splits, %v", r.Retries, r.Splits, r.RowsDeadLettered)
	}
	_ = rows
}

// A device that runs out of memory halves the batch, and later batches before they run.
func TestOutOfMemorySplits(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.faults = fake.Faults{Memory: 90}
	failed := 0
	r := j.run()
	j.check(rows)
	for _, d := range j.ran {
		failed += int(d.Tries() - d.Runs())
	}
	if r.Splits == 0 || r.Retries != 0 || r.RowsDeadLettered["total"] != 3 || int64(failed) >= r.Splits {
		t.Errorf("%d splits, %d runs out of memory, %d retries, %v", r.Splits, failed, r.Retries, r.RowsDeadLettered)
	}
}

// A text that alone is too large for the device is dead, and costs no other text.
func TestATextThatIsTooLarge(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.faults = fake.Faults{Memory: 50}
	large := func(text string) bool { return len(j.ids(text)) > 50 }
	r := j.run()
	j.checkWithout(rows, large)
	n := int64(0)
	for _, row := range rows {
		if row.Text == nil || !large(*row.Text) {
			continue
		}
		n++
		if l := j.letters()[row.ID]; l.Class != outOfMemory || l.Attempts != 5 || l.Text == nil || *l.Text != *row.Text {
			t.Errorf("row %d: %+v", row.ID, l)
		}
	}
	if n == 0 || r.RowsDeadLettered[outOfMemory] != n {
		t.Errorf("%d large texts, %v", n, r.RowsDeadLettered)
	}
}

// Once a device ran out of memory it gets no larger batch, not even one that was laid out.
func TestMemoryIsNotTriedAgain(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.devices, j.faults = 1, fake.Faults{Memory: 110}
	failed, most := 0, 1<<30
	j.before = func(_ []int64, items, length int, _ []int32) error {
		if items > 1 && items*length > most {
			t.Errorf("a batch of %d tokens after one of %d was too large", items*length, 2*most)
		}
		if items*length > 110 {
			failed++
			most = items * length / 2
		}
		return nil
	}
	j.run()
	j.check(rows)
	if failed != 1 {
		t.Errorf("the device ran out of memory %d times", failed)
	}
}

// A device whose limits are smaller than those of the plan gets its batches in parts.
func TestSmallerLimitsSplitThePlan(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.window, j.devices = 1000, 1
	ctx, stop := context.WithCancelCause(context.Background())
	j.before = func([]int64, int, int, []int32) error {
		stop(fault.New(fault.Interrupted, "stopped by the test"))
		return nil
	}
	if _, err := j.try(ctx); !fault.Is(err, fault.Interrupted) {
		t.Fatalf("error %v", err)
	}
	j.limits.Items = 3
	largest := 0
	j.before = func(_ []int64, items, _ int, _ []int32) error { largest = max(largest, items); return nil }
	r := j.run()
	if largest > 3 || r.Splits == 0 || r.Retries != 0 {
		t.Errorf("a batch of %d texts; %d splits, %d retries", largest, r.Splits, r.Retries)
	}
	j.check(rows)
}

// A resumed run repeats the splits of the run before, also where there would now be
// memory enough.
func TestSplitsAreRepeated(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.devices, j.faults = 1, fake.Faults{Memory: 90}
	var sizes []int
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	j.before = func(_ []int64, items, length int, _ []int32) error {
		if sizes = append(sizes, items); items < sizes[0] {
			stop(fault.New(fault.Interrupted, "stopped by the test"))
		}
		return nil
	}
	if _, err := j.try(ctx); !fault.Is(err, fault.Interrupted) || sizes[len(sizes)-1] != sizes[0]/2 {
		t.Fatalf("error %v, batches of %v", err, sizes)
	}
	whole := sizes[0]
	sizes, j.faults = nil, fake.Faults{}
	r := j.run()
	if sizes[0] >= whole || r.Splits != 0 {
		t.Errorf("the first batch has %d texts, want a half of %d", sizes[0], whole)
	}
	j.check(rows)
}

func TestALostDevice(t *testing.T) {
	folder, rows := fiveWindows(t)
	for name, faults := range map[string]fake.Faults{"dies": {Die: fake.At{Device: 1, N: 3}}, "hangs": {Hang: fake.At{Device: 1, N: 3}}} {
		t.Run(name, func(t *testing.T) {
			defer func(d time.Duration) { leastPatience = d }(leastPatience)
			leastPatience = 300 * time.Millisecond
			j := newJob(t, folder)
			j.devices, j.faults = 3, faults
			j.before = func([]int64, int, int, []int32) error { time.Sleep(time.Millisecond); return nil }
			r := j.run()
			j.check(rows)
			if r.Devices[1].Dropped == "" || r.Devices[0].Dropped != "" || r.RowsDeadLettered["total"] != 3 {
				t.Errorf("devices %+v, %v", r.Devices, r.RowsDeadLettered)
			}
		})
	}
}

func TestNoDeviceIsLeft(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.devices, j.faults = 1, fake.Faults{Die: fake.At{Device: 0, N: 7}}
	if _, err := j.try(context.Background()); !fault.Is(err, fault.DeviceFailed) || !strings.Contains(err.Error(), "no device is left") {
		t.Fatalf("error %v", err)
	}
	j.faults = fake.Faults{}
	if r := j.run(); r.VectorsComputed == 0 || r.VectorsReused == 0 {
		t.Errorf("%d computed, %d reused", r.VectorsComputed, r.VectorsReused)
	}
	j.check(rows)
}

// A text that kills devices costs two of them, after everything else is done.
func TestATextThatKillsDevices(t *testing.T) {
	folder, rows := fiveWindows(t)
	rows[10].Text = str("a zebra in a row")
	writeCorpus(t, folder+"/a.parquet", rows[:130])
	j := newJob(t, folder)
	j.devices, j.window, j.faults = 4, 1000, fake.Faults{Kill: j.ids("zebra")[1]}
	r, err := j.try(context.Background())
	e := fault.Of(err)
	if !fault.Is(err, fault.DeviceFailed) || e.Row < 0 || !strings.Contains(err.Error(), "second") {
		t.Fatalf("error %v", err)
	}
	dropped := 0
	for _, d := range r.Devices {
		if d.Dropped != "" {
			dropped++
		}
	}
	if unique := distinctTexts(rows); dropped != 1 || r.VectorsComputed < unique-40 {
		t.Errorf("%d devices dropped, %d of %d vectors computed", dropped, r.VectorsComputed, unique)
	}
}

func TestWrongVectorsStop(t *testing.T) {
	for name, f := range map[string]fake.Faults{"zeros": {Zero: fake.At{N: 1}}, "too few": {Count: fake.At{N: 1}}} {
		t.Run(name, func(t *testing.T) {
			folder, _ := fiveWindows(t)
			j := newJob(t, folder)
			j.devices, j.faults = 1, f
			r, err := j.try(context.Background())
			if !fault.Is(err, fault.BadVectors) || r.VectorsComputed != 0 || r.Retries+r.Splits != 0 {
				t.Fatalf("error %v, %d vectors, %d retries, %d splits", err, r.VectorsComputed, r.Retries, r.Splits)
			}
		})
	}
}

// A model that changes under a run ends it before anything more is committed.
func TestAChangedModelStops(t *testing.T) {
	folder, rows := fiveWindows(t)
	j := newJob(t, folder)
	j.devices = 1
	o := j.options(context.Background())
	asked, committed := 0, int64(0)
	o.Unchanged = func() error {
		if asked++; asked == 4 {
			committed = j.ran[0].Vectors()
			return fault.New(fault.BadVectors, "the model's files changed")
		}
		return nil
	}
	r, err := Run(context.Background(), o)
	if !fault.Is(err, fault.BadVectors) || asked != 4 || r.VectorsComputed == 0 || r.VectorsComputed >= committed {
		t.Fatalf("error %v after %d questions, %d of %d vectors committed", err, asked, r.VectorsComputed, committed)
	}
	if again := j.run(); again.VectorsComputed != distinctTexts(rows)-r.VectorsComputed {
		t.Errorf("%d vectors were committed, and %d computed after that", r.VectorsComputed, again.VectorsComputed)
	}
	j.check(rows)
}

func TestTooManyDeviceFailuresStop(t *testing.T) {
	folder, rows := fiveWindows(t)
	for i := range 100 {
		if rows[i].Text != nil {
			rows[i].Text = str("a zebra in row %s", strings.Repeat("or ", i))
		}
	}
	writeCorpus(t, folder+"/a.parquet", rows[:130])
	j := newJob(t, folder)
	j.faults, j.failed = fake.Faults{NaN: j.ids("zebra")[1]}, 4
	if _, err := j.try(context.Background()); !fault.Is(err, fault.TooManyFailures) {
		t.Fatalf("error %v", err)
	}
	// Run again, it does not begin to count anew.
	if r, err := j.try(context.Background()); !fault.Is(err, fault.TooManyFailures) || r.Retries > 2*int64(j.devices) {
		t.Fatalf("the second run: error %v, %d texts tried again", err, r.Retries)
	}
	j.failed = 100
	if r := j.run(); r.RowsDeadLettered[nonFinite] < 50 {
		t.Errorf("%v", r.RowsDeadLettered)
	}
}

// Nothing waits for ever, whatever ended the run.
func TestNoGoroutineIsLeft(t *testing.T) {
	folder, _ := fiveWindows(t)
	j := newJob(t, folder)
	j.run()
	before := runtime.NumGoroutine()
	for _, f := range []fake.Faults{{Die: fake.At{N: 3}}, {Panic: fake.At{N: 3}}, {Zero: fake.At{N: 3}}} {
		j := newJob(t, folder)
		j.devices, j.faults = 1, f
		if _, err := j.try(context.Background()); err == nil {
			t.Errorf("%+v did not end the run", f)
		}
	}
	for wait := 0; runtime.NumGoroutine() > before+6 && wait < 200; wait++ {
		time.Sleep(10 * time.Millisecond) // tokenizers and corpora of the jobs close with the test
	}
	if n := runtime.NumGoroutine(); n > before+6 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}
