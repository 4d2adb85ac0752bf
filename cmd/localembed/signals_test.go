package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/backfill"
	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/testenv"
)

// soak is set by `make soak`: more kills on the same corpus.
const soak = "LOCALEMBED_SOAK"

// process is localembed in a process of its own, on MiniLM and the CPU, over a corpus
// of windows of 40 rows whose texts repeat across windows.
type process struct {
	t            *testing.T
	dir, out     string
	corpus       string
	flags        []string
	fileLimit    string // of the shell's `ulimit -f`, "" for none
	exit         int    // of a run that finishes
	unique, rows int64
}

func (p *process) path(name string) string { return filepath.Join(p.dir, name) }

func newProcess(t *testing.T, rows int) *process {
	p := &process{t: t, dir: t.TempDir(), corpus: "corpus.parquet", rows: int64(rows)}
	p.out = p.path("out")
	var corpus []corpusRow
	texts := map[string]bool{}
	for i := range rows {
		same := i
		if i%5 == 4 {
			same = i / 3
		}
		text := fmt.Sprintf("text %d says %s", same, strings.Repeat("something more, ", same*7%16))
		texts[text] = true
		corpus = append(corpus, corpusRow{ID: int64(i), Text: &text})
	}
	p.unique = int64(len(texts))
	if err := parquet.WriteFile(p.path(p.corpus), corpus); err != nil {
		t.Fatal(err)
	}
	return p
}

// start runs the command; what it prints is in the buffers once it has ended.
func (p *process) start(out string, flags ...string) (c *exec.Cmd, stdout, stderr *bytes.Buffer) {
	p.t.Helper()
	exe, err := exec.LookPath("localembed") // made by TestMain
	if err != nil {
		p.t.Fatal(err)
	}
	args := append([]string{"run", "--json", "--model", testenv.Model(p.t), "--out", out,
		"--devices", "cpu:2", "--window", "40", "--batch-tokens", "256"}, p.flags...)
	args = append(append(args, flags...), p.corpus)
	c = exec.Command(exe, args...)
	if p.fileLimit != "" {
		c = exec.Command("sh", append([]string{"-c", `ulimit -f ` + p.fileLimit + ` && exec "$0" "$@"`, exe}, args...)...)
	}
	c.Dir = p.dir
	c.Env = append(os.Environ(), onnx.Env+"="+testenv.ORT(p.t))
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	c.Stdout, c.Stderr = stdout, stderr
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Process.Kill() })
	return c, stdout, stderr
}

// finish runs the command to its end.
func (p *process) finish(out string) backfill.Report {
	p.t.Helper()
	c, stdout, stderr := p.start(out)
	if err := c.Wait(); c.ProcessState.ExitCode() != p.exit {
		p.t.Fatalf("run: %v\n%s", err, stderr)
	}
	return p.report(stdout)
}

func (p *process) report(stdout *bytes.Buffer) (r backfill.Report) {
	p.t.Helper()
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		p.t.Fatalf("no report: %v\n%s", err, stdout)
	}
	return r
}

// sums are the SHA-256 of the parts.
func (p *process) sums(out string) map[string]string {
	p.t.Helper()
	parts, err := filepath.Glob(filepath.Join(out, "part-*.parquet"))
	if err != nil {
		p.t.Fatal(err)
	}
	sums := map[string]string{}
	for _, part := range parts {
		b, err := os.ReadFile(part)
		if err != nil {
			p.t.Fatal(err)
		}
		sums[filepath.Base(part)] = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	return sums
}

// stored is the size of the store's segments in bytes.
func (p *process) stored(out string) (size int64) {
	p.t.Helper()
	for _, s := range p.segments(out) {
		if info, err := os.Stat(s); err == nil {
			size += info.Size()
		}
	}
	return size
}

// await waits until the store's segments have a size, or the process is over.
func (p *process) await(c *exec.Cmd, out string, size int64) {
	p.t.Helper()
	p.until(c, func() bool { return p.stored(out) >= size })
}

func (p *process) until(c *exec.Cmd, reached func() bool) {
	p.t.Helper()
	over := func() bool { // an ended process waits to be waited for
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		return err == nil && bytes.Contains(stat, []byte(") Z "))
	}
	for until := time.Now().Add(time.Minute); !reached() && !over(); {
		if time.Now().After(until) {
			p.t.Fatal("a run did not come as far in a minute as it should")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (p *process) segments(out string) []string {
	p.t.Helper()
	segments, err := filepath.Glob(filepath.Join(backfill.StoreDir(out, ""), "vectors", "*.seg"))
	if err != nil {
		p.t.Fatal(err)
	}
	return segments
}

// committed counts the records and vectors in the store's segments and fails where
// one batch is there twice. It reads the segments by their documented layout.
func (p *process) committed(out string) (batches, vectors int64) {
	p.t.Helper()
	seen := map[string]bool{}
	for _, s := range p.segments(out) {
		b, err := os.ReadFile(s)
		if err != nil {
			p.t.Fatal(err)
		}
		for len(b) > 0 {
			if len(b) < 48 || string(b[:4]) != "LEB1" {
				p.t.Fatalf("%s: no record where one should begin", s)
			}
			id, count, dim := string(b[4:36]), binary.LittleEndian.Uint32(b[36:]), binary.LittleEndian.Uint32(b[40:])
			end := 48 + int(count*dim*4)
			if dim != 384 || end > len(b) {
				p.t.Fatalf("%s: a record of %d × %d values in %d bytes", s, count, dim, len(b))
			}
			table := crc32.MakeTable(crc32.Castagnoli)
			if sum := crc32.Update(crc32.Checksum(b[:44], table), table, b[48:end]); sum != binary.LittleEndian.Uint32(b[44:]) {
				p.t.Fatalf("%s: a record does not match its checksum", s)
			}
			if seen[id] {
				p.t.Fatalf("batch %x was committed twice", id)
			}
			seen[id] = true
			batches++
			vectors += int64(count)
			b = b[end:]
		}
	}
	return batches, vectors
}

// disturbance is what happens to runs, again and again.
type disturbance struct {
	signal    os.Signal
	loseStore bool // after each, what is published is all that is left
	badFile   bool // a file in the middle of the corpus is damaged and left out
	few, many int  // times in a test and in make soak
}

// Signals at random moments, and the same command after each: the shards are those of
// an undisturbed run, and where the store is kept, each text was computed and committed once.
func TestDisturbedRunsEndAsUndisturbedOnes(t *testing.T) {
	for name, d := range map[string]disturbance{
		"killed":                 {signal: syscall.SIGKILL, few: 2, many: 100},
		"killed, store lost":     {signal: syscall.SIGKILL, loseStore: true, few: 2, many: 100},
		"killed with a bad file": {signal: syscall.SIGKILL, badFile: true, few: 1, many: 30},
		"terminated":             {signal: syscall.SIGTERM, many: 30},
	} {
		t.Run(name, func(t *testing.T) {
			times, rows := d.few, 240
			if os.Getenv(soak) != "" {
				times, rows = d.many, 2400
			}
			if times > 0 {
				d.disturb(t, times, rows)
			}
		})
	}
}

func (d *disturbance) disturb(t *testing.T, times, rows int) {
	p := newProcess(t, rows)
	p.flags = []string{"--batch-items", "4"}
	if d.badFile {
		p.damage()
	}
	undisturbed := p.path("undisturbed")
	r := p.finish(undisturbed)
	want := p.sums(undisturbed)
	if len(want) != rows/40 || r.UniqueTexts != p.unique || r.VectorsComputed != p.unique {
		t.Fatalf("the undisturbed run made %d parts, %d of %d vectors", len(want), r.VectorsComputed, p.unique)
	}
	batches, _ := p.committed(undisturbed)
	total := p.stored(undisturbed)

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	done := 0
	for ; done < times; done++ {
		c, _, stderr := p.start(p.out)
		// After an arbitrary share of the work, of which some is left for each time, and
		// a moment more: anywhere between two commits. A store that is lost counts for nothing.
		if d.loseStore {
			goal := min(len(want)-1, len(p.sums(p.out))+random.IntN(1+2*len(want)/times))
			p.until(c, func() bool { return len(p.sums(p.out)) >= goal })
		} else {
			p.await(c, p.out, min(total, p.stored(p.out)+int64(random.Float64()/float64(times)*float64(total))))
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		_ = c.Process.Signal(d.signal)
		err := c.Wait()
		if c.ProcessState.ExitCode() == p.exit {
			break // the job was done before
		}
		status := c.ProcessState.Sys().(syscall.WaitStatus)
		if stopped := c.ProcessState.ExitCode() == fault.ExitInterrupted; !stopped && status.Signal() != d.signal {
			t.Fatalf("seed %d, time %d: %v\n%s", seed, done+1, err, stderr)
		}
		if d.loseStore {
			if err := os.RemoveAll(backfill.StoreDir(p.out, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("seed %d: %d times %s, %d of %d parts were there then", seed, done, d.signal, len(p.sums(p.out)), len(want))
	last := p.finish(p.out)
	if got := p.sums(p.out); !maps.Equal(got, want) {
		t.Errorf("seed %d: the shards differ:\n%v\n%v", seed, got, want)
	}
	if n, vectors := p.committed(p.out); !d.loseStore && (n != batches || vectors != p.unique) {
		t.Errorf("%d batches with %d vectors were committed, want %d with %d", n, vectors, batches, p.unique)
	}
	if last.VectorsComputed+last.VectorsReused != p.unique || last.RowsEmbedded != p.rows {
		t.Errorf("the last report has %d + %d vectors and %d rows, want %d and %d", last.VectorsComputed, last.VectorsReused, last.RowsEmbedded, p.unique, p.rows)
	}
}

// damage makes the corpus a folder in which a file behind the first row is damaged.
func (p *process) damage() {
	p.t.Helper()
	whole, err := os.ReadFile(p.path(p.corpus))
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.corpus = "corpus"
	if err := os.Mkdir(p.path(p.corpus), 0o755); err != nil {
		p.t.Fatal(err)
	}
	// The damaged file has the same rows, so that rows of it that came through would show.
	m := f.Metadata().RowGroups[0].Columns[1].MetaData
	broken := bytes.Clone(whole)
	broken[m.DataPageOffset+m.TotalCompressedSize-20] ^= 1
	for name, b := range map[string][]byte{"a.parquet": broken, "b.parquet": whole} {
		if err := os.WriteFile(filepath.Join(p.path(p.corpus), name), b, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	p.flags = append(p.flags, "--on-bad-file", "skip")
	p.exit = fault.ExitLeftOut
}

// Of two processes on one output, or one store, the second is told who works there, and
// the first is not disturbed. It is held in the middle of its work meanwhile, so that the two do overlap.
func TestTwoProcessesAtOnce(t *testing.T) {
	p := newProcess(t, 240)
	undisturbed := p.path("undisturbed")
	p.finish(undisturbed)
	want := p.sums(undisturbed)
	for name, outs := range map[string][2]string{"one output": {"one", "one"}, "one store": {"two", "three"}} {
		store := p.path(name)
		p.flags = []string{"--store", store}
		first, _, said := p.start(p.path(outs[0]))
		p.until(first, func() bool {
			segments, err := filepath.Glob(filepath.Join(store, "vectors", "*.seg"))
			return err == nil && len(segments) > 0
		})
		_ = first.Process.Signal(syscall.SIGSTOP)
		second, _, stderr := p.start(p.path(outs[1]))
		_ = second.Wait()
		_ = first.Process.Signal(syscall.SIGCONT)
		told := strings.Contains(stderr.String(), `"class":"store_locked"`) && strings.Contains(stderr.String(), fmt.Sprint(first.Process.Pid))
		if second.ProcessState.ExitCode() != fault.ExitFailed || !told {
			t.Errorf("%s: the second ends with %d\n%s", name, second.ProcessState.ExitCode(), stderr)
		}
		if err := first.Wait(); err != nil {
			t.Errorf("%s: the first: %v\n%s", name, err, said)
		}
		if got := p.sums(p.path(outs[0])); !maps.Equal(got, want) {
			t.Errorf("%s: the shards differ:\n%v\n%v", name, got, want)
		}
		p.finish(p.path(outs[1]))
		if got := p.sums(p.path(outs[1])); !maps.Equal(got, want) {
			t.Errorf("%s: the second's shards differ:\n%v\n%v", name, got, want)
		}
	}
}

// SIGINT and SIGTERM end a run in good order: what is in flight is committed, the
// report says what was done, and the same command goes on.
func TestSignalsEndARunInGoodOrder(t *testing.T) {
	p := newProcess(t, 400)
	computed := int64(0)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c, stdout, stderr := p.start(p.out)
		p.await(c, p.out, p.stored(p.out)+1)
		if err := c.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		err := c.Wait()
		if c.ProcessState.ExitCode() != 130 {
			t.Fatalf("%v: %v\n%s", sig, err, stderr)
		}
		r := p.report(stdout)
		if r.VectorsComputed == 0 || r.VectorsComputed+computed >= p.unique {
			t.Errorf("%v: %d vectors computed, want some and not all %d", sig, r.VectorsComputed, p.unique)
		}
		computed += r.VectorsComputed
		if _, vectors := p.committed(p.out); vectors != computed {
			t.Errorf("%v: %d vectors are committed, the reports say %d", sig, vectors, computed)
		}
		var f struct{ Class, Message, Hint string }
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &f); err != nil || f.Class != "interrupted" || !strings.Contains(f.Hint, "same command again") {
			t.Errorf("%v: stderr ends in %q (%v)", sig, lines[len(lines)-1], err)
		}
	}
	r := p.finish(p.out)
	if r.VectorsComputed+computed != p.unique || r.RowsEmbedded != p.rows {
		t.Errorf("%d vectors were computed before and %d after, want %d; %d rows", computed, r.VectorsComputed, p.unique, r.RowsEmbedded)
	}
}
