package backfill

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/onnx/fake"
	"localembed/internal/shard"
	"localembed/internal/sortpack"
	"localembed/internal/tokenize"
)

// Seeds of the simulation, from the first on; `make soak` asks for more.
const (
	seedsVar = "LOCALEMBED_SEEDS"
	firstVar = "LOCALEMBED_FIRST_SEED"
)

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// The simulation runs whole jobs on a virtual clock and a file system that loses
// what was not synced: random corpora, limits and devices, with faults, deaths and
// signals at random batches, until the job is done. Whatever happened, the shards are
// those of a run to which nothing happened but the texts that no device can embed.
func TestSimulation(t *testing.T) {
	tok := tokenizer(t, 64)
	first := number(firstVar, 1)
	for seed := first; seed < first+number(seedsVar, 200) && !t.Failed(); seed++ {
		// A test of its own, so that what a seed leaves behind goes when it is over.
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSimulation(t, seed, tok)
			synctest.Test(t, s.simulate)
			if s.t = t; !t.Failed() {
				s.compare()
			}
			if t.Failed() {
				t.Logf("replay it with %s=%d %s=1 go test -run TestSimulation ./internal/backfill", firstVar, seed, seedsVar)
			}
		})
	}
}

// simulation is one seed's world.
type simulation struct {
	*job
	seed        int
	random      *rand.Rand
	rows        []row
	known       known
	undisturbed *Report
	want        map[string]string // the shards of the undisturbed run
	report      *Report           // of the process that ended the job

	nan, bad int64 // token ids that get NaN, and that fail always

	mu     sync.Mutex
	events int             // batches that began in this process
	kill   int             // the process dies at this event, 0 for never
	signal int             // it is told to stop
	lose   map[string]int  // device: batch at which it is lost
	hang   map[string]bool // instead it does not come back
	tries  map[string]int
	slow   map[string]time.Duration
	memory int
	flaky  int
	end    chan struct{} // lets hung devices go when the seed is over
	die    func()
	stop   func()
}

func newSimulation(t *testing.T, seed int, tok *tokenize.Tokenizer) *simulation {
	s := &simulation{seed: seed, random: rand.New(rand.NewPCG(uint64(seed), 1)), end: make(chan struct{}), known: known{}}
	dir := t.TempDir()
	n := func(from, to int) int { return from + s.random.IntN(to-from+1) }
	s.job = &job{
		t: t, out: "/out", corpus: []string{dir + "/corpus.parquet"}, window: n(5, 60), model: "m", onLong: "truncate", devices: n(1, 8), failed: 100,
		limits:    sortpack.Limits{Tokens: n(64, 400), Items: n(1, 16), Cells: 1 << 20, MinTokens: []int{1, 1, 100}[n(0, 2)]},
		tokenizer: tok,
	}
	s.nan, s.bad = s.ids("zebra")[1], s.ids("giraffe")[1]
	s.write(dir+"/corpus.parquet", n(10, 150))

	// Nothing happens but that some texts cannot be embedded.
	s.fs = memory(t, vfs.NewMem())
	devices := s.devices
	s.devices, s.before = 1, func(ids []int64, items, length int, _ []int32) error { return s.unfit(ids, items, length) }
	s.undisturbed = s.run()
	s.want = s.parts()
	s.devices = devices
	return s
}

// simulate runs processes until the job is done.
func (s *simulation) simulate(t *testing.T) {
	s.t, s.end = t, make(chan struct{})
	defer func() { close(s.end); synctest.Wait() }()
	mem := vfs.NewCrashableMem()
	memory(t, mem)
	disturbed := s.random.IntN(9)
	for process := 0; s.report == nil && !t.Failed(); process++ {
		if process > 60 {
			t.Fatalf("seed %d: the job does not end", s.seed)
		}
		mem = s.process(mem, process < disturbed)
	}
}

// compare says what is wrong with the outcome.
func (s *simulation) compare() {
	t, report := s.t, s.report
	if got := s.parts(); !maps.Equal(got, s.want) {
		t.Errorf("seed %d: the shards differ from those of an undisturbed run", s.seed)
	}
	if report.RowsIn != int64(len(s.rows)) || report.RowsEmbedded+report.DeadLetters() != report.RowsIn || !maps.Equal(report.RowsDeadLettered, s.undisturbed.RowsDeadLettered) {
		t.Errorf("seed %d: %d rows, %d embedded, dead letters %v instead of %v", s.seed, report.RowsIn, report.RowsEmbedded, report.RowsDeadLettered, s.undisturbed.RowsDeadLettered)
	}
	s.checkWithout(s.rows, func(text string) bool { return strings.Contains(text, "zebra") || strings.Contains(text, "giraffe") })
	if n := s.stored(); n != report.UniqueTexts {
		t.Errorf("seed %d: %d vectors are stored for %d distinct texts", s.seed, n, report.UniqueTexts)
	}
}

// parts are the SHA-256 of the shards. Dead letters name the device that gave up.
func (s *simulation) parts() map[string]string {
	sums := s.sums()
	maps.DeleteFunc(sums, func(name, _ string) bool { return strings.Contains(name, shard.FailuresDir) })
	return sums
}

// known is the real tokenizer's outcome for each text of the corpus: its threads do not
// live on the virtual clock.
type known map[string]tokenize.Tokens

func (k known) learn(tok *tokenize.Tokenizer, text string) error {
	var arena column.Arena
	arena.Append([]byte(text))
	var t tokenize.Tokens
	err := tok.Encode(context.Background(), &arena, []int32{0}, &t)
	k[text] = t
	return err
}

// Encode is that of the real one.
func (k known) Encode(ctx context.Context, texts *column.Arena, docs []int32, out *tokenize.Tokens) error {
	for _, d := range docs {
		t := k[string(texts.At(int(d)))]
		out.IDs = append(out.IDs, t.IDs...)
		out.Ends = append(out.Ends, int64(len(out.IDs)))
		out.Truncated = append(out.Truncated, t.Truncated...)
	}
	return context.Cause(ctx)
}

// memory makes the root folder.
func memory(t testing.TB, fs vfs.FS) vfs.FS {
	if err := fs.MkdirAll("/", 0o755); err != nil {
		t.Fatal(err)
	}
	return fs
}

// write makes a corpus: texts of all lengths, some of them often, nulls, blanks,
// invalid ones, and some that no device can embed.
func (s *simulation) write(path string, rows int) {
	words := []string{"file", "read", "the", "a line", "of", "bytes", "and", "again"}
	var texts []string
	for i := range rows {
		r := row{ID: int64(i)}
		switch k := s.random.IntN(40); {
		case k == 0:
		case k == 1:
			r.Text = str(" ")
		case k == 2:
			r.Text = str("a zebra %d", s.random.IntN(3))
		case k == 3:
			r.Text = str("a giraffe %d", s.random.IntN(3))
		case k < 12 && len(texts) > 0:
			r.Text = str("%s", texts[s.random.IntN(len(texts))])
		default:
			var b strings.Builder
			fmt.Fprint(&b, i)
			for range int(math.Exp(s.random.Float64() * 4.5)) {
				b.WriteString(" " + words[s.random.IntN(len(words))])
			}
			texts = append(texts, b.String())
			r.Text = str("%s", b.String())
		}
		if r.Text != nil {
			if err := s.known.learn(s.tokenizer, *r.Text); err != nil {
				s.t.Fatal(err)
			}
		}
		s.rows = append(s.rows, r)
	}
	writeCorpus(s.t, path, s.rows)
}

// process is one process of the job. It gives the file system as the next one finds
// it, and the report where the job is done.
func (s *simulation) process(mem *vfs.MemFS, disturbed bool) *vfs.MemFS {
	s.fs = mem
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	s.mu.Lock() // a device of the process before may still hang
	s.events, s.kill, s.signal, s.memory, s.flaky = 0, 0, 0, 0, 0
	s.lose, s.hang, s.tries, s.slow = map[string]int{}, map[string]bool{}, map[string]int{}, map[string]time.Duration{}
	for i := range s.devices {
		s.slow[fmt.Sprintf("fake:%d", i)] = time.Duration(1+s.random.IntN(1000)) * time.Millisecond
	}
	keep := s.random.IntN(101)
	var clone atomic.Pointer[vfs.MemFS]
	s.die = func() {
		clone.Store(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rand.New(rand.NewPCG(1, uint64(keep)))}))
		cancel(errors.New("the machine died"))
	}
	s.stop = func() { cancel(fault.New(fault.Interrupted, "a signal")) }
	if disturbed {
		at := 1 + s.random.IntN(30)
		switch s.random.IntN(3) {
		case 0:
			s.kill = at
		case 1:
			s.signal = at
		}
		if s.random.IntN(2) == 0 {
			s.flaky = 2 + s.random.IntN(4)
		}
		if s.random.IntN(3) == 0 {
			s.memory = 20 + s.random.IntN(200)
		}
		for i := range s.devices {
			if s.random.IntN(4) == 0 {
				name := fmt.Sprintf("fake:%d", i)
				s.lose[name], s.hang[name] = 1+s.random.IntN(5), s.random.IntN(2) == 0
			}
		}
	}
	s.mu.Unlock()
	o := s.options(ctx)
	o.Tokenizer = s.known
	o.OpenDevices = s.open
	r, err := Run(ctx, o)
	_ = o.Corpus.Close()
	if c := clone.Load(); c != nil {
		return c
	}
	switch {
	case err == nil:
		s.report = r
	case !fault.Is(err, fault.Interrupted) && !fault.Is(err, fault.DeviceFailed):
		s.t.Errorf("the run ended with %v", err)
	}
	return mem
}

func (s *simulation) open() ([]Device, error) {
	var devices []Device
	for i := range s.devices {
		d := &fake.Device{DeviceName: fmt.Sprintf("fake:%d", i), Number: i, Dim: testDim}
		d.Before = func(ids []int64, items, length int, _ []int32) error { return s.meet(d.DeviceName, ids, items, length) }
		devices = append(devices, d)
	}
	return devices, nil
}

// meet is what happens to a batch.
func (s *simulation) meet(device string, ids []int64, items, length int) error {
	s.mu.Lock()
	s.events++
	s.tries[device]++
	try := s.tries[device]
	switch s.events {
	case s.kill:
		s.die()
	case s.signal:
		s.stop()
	}
	slow, lose, hang, memory, flaky := s.slow[device], s.lose[device], s.hang[device], s.memory, s.flaky
	s.mu.Unlock()
	time.Sleep(slow)
	failed := func(kind onnx.Kind) error {
		return &onnx.Error{Kind: kind, Device: device, Fault: fault.New(fault.DeviceFailed, "%s: %s", device, kind)}
	}
	switch {
	case try == lose && hang:
		<-s.end
		return failed(onnx.Lost)
	case try == lose:
		return failed(onnx.Lost)
	case memory > 0 && items > 1 && items*length > memory:
		return failed(onnx.OutOfMemory)
	case flaky > 0 && try%flaky == 0:
		return failed(onnx.Transient)
	}
	return s.unfit(ids, items, length)
}

// unfit fails a batch with a text that no device can embed.
func (s *simulation) unfit(ids []int64, _, length int) error {
	if i := slices.Index(ids, s.nan); i >= 0 {
		return notFinite{item: i / length}
	}
	if slices.Contains(ids, s.bad) {
		return &onnx.Error{Kind: onnx.Transient, Device: "fake", Fault: fault.New(fault.DeviceFailed, "it always fails")}
	}
	return nil
}

// stored counts the vectors in the store's segments.
func (s *simulation) stored() (n int64) {
	dir := filepath.Join(StoreDir(s.out, ""), "vectors")
	names, err := s.fs.List(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		f, err := s.fs.Open(filepath.Join(dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		for len(b) > 48 {
			count, dim := binary.LittleEndian.Uint32(b[36:]), binary.LittleEndian.Uint32(b[40:])
			n += int64(count)
			b = b[48+4*count*dim:]
		}
	}
	return n
}
