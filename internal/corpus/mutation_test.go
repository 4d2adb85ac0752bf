package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"localembed/internal/corpus/wire"
	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Environment of the process that reads mutated files: their folder, how many, and the first seed.
const (
	mutateDir   = "LOCALEMBED_MUTATE_DIR"
	mutateCount = "LOCALEMBED_MUTATE_COUNT"
	mutateSeed  = "LOCALEMBED_MUTATE_SEED"
)

// mostGrowth is how much more memory mutated files may take than whole ones.
const mostGrowth = 200 << 20

// TestMutations changes bytes of files of all codecs, page versions and encodings at random: never a panic, a
// hang, a wrong row, an error without a class, or much memory. It reads them in a process
// of its own, since neither a hang nor memory can be caught in one.
func TestMutations(t *testing.T) {
	dir, files := manyKinds(t)
	count := "300"
	if os.Getenv("LOCALEMBED_SOAK") != "" {
		count = "3000"
	}
	for name, k := range files {
		// Files of megabytes would make the soak test their size alone.
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || k.Class != "" || k.Text != "text" || k.ID != "id" || info.Size() > 100_000 {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	seed := os.Getenv(mutateSeed) // to replay one: with the count 1
	if seed == "" {
		seed = strconv.FormatInt(time.Now().UnixNano()%1e12, 10)
	} else if c := os.Getenv(mutateCount); c != "" {
		count = c
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestReadMutated$", "-test.v")
	cmd.Env = append(os.Environ(), mutateDir+"="+dir, mutateCount+"="+count, mutateSeed+"="+seed)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestReadMutated")) {
		t.Fatalf("%v\n%.20000s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "mutations:") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// original is a whole file and what is in it.
type original struct {
	name  string
	lists bool
	bytes []byte
	docs  []kindDoc
	pages []page
}

// page is where the body of a page lies, without its header.
type page struct {
	from, to int
	text     bool // of the texts, else of the ids
	sum      bool // it has a checksum
}

// TestReadMutated is the process in which TestMutations reads.
func TestReadMutated(t *testing.T) {
	dir := os.Getenv(mutateDir)
	if dir == "" {
		t.Skip("TestMutations starts it")
	}
	count, err := strconv.Atoi(os.Getenv(mutateCount))
	must(t, err)
	first, err := strconv.ParseUint(os.Getenv(mutateSeed), 10, 64)
	must(t, err)
	var all []original
	paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	must(t, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		docs, err := readDocs(Options{Args: []string{path}})
		must(t, err)
		all = append(all, original{filepath.Base(path), strings.Contains(path, "lists") || strings.Contains(path, "chunks") || strings.Contains(path, "go_"), b, docs, pagesOf(t, b)})
	}
	before := peakMemory(t)
	outcomes := map[string]int{}
	for i := range count {
		seed := first + uint64(i)
		r := rand.New(rand.NewPCG(seed, 0))
		o := all[r.IntN(len(all))]
		mutated, from, to, what := mutate(r, &o)
		replay := fmt.Sprintf("%s, %s; replay with %s=%d %s=1", o.name, what, mutateSeed, seed, mutateCount)
		hang := time.AfterFunc(30*time.Second, func() { panic("reading hangs: " + replay) })
		class, err := o.read(filepath.Join(dir, "mutated"), mutated, from, to)
		hang.Stop()
		if err != nil {
			t.Errorf("%v: %s", err, replay)
		}
		outcomes[class]++
		if grown := peakMemory(t) - before; grown > mostGrowth {
			t.Fatalf("memory grew by %d MB: %s", grown>>20, replay)
		}
	}
	t.Logf("%d mutations: of %d files; %v; peak memory grew by %d MB", count, len(all), outcomes, (peakMemory(t)-before)>>20)
}

// read reads the file with the bytes from from to to changed, and compares it with the whole one as
// far as anybody can: a change inside a page without a checksum may pass as another text or id.
func (o *original) read(path string, mutated []byte, from, to int) (class string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := os.WriteFile(path, mutated, 0o644); err != nil {
		return "", err
	}
	docs, err := readDocs(Options{Args: []string{path}})
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		known := []fault.Class{fault.NotParquet, fault.TruncatedFile, fault.CorruptFile, fault.EncryptedFile, fault.UnsupportedFile, fault.NoSuchColumn, fault.WrongType}
		if !slices.Contains(known, f.Class) || f.Hint == "" || f.File != path {
			return string(f.Class), fmt.Errorf("refused as %s: %w (%s)", f.Class, f, f.Hint)
		}
		return string(f.Class), nil
	case err != nil:
		return "", fmt.Errorf("an error without a class: %w", err)
	}
	textMay, idMay := false, false
	for _, p := range o.pages {
		if !p.sum && from < p.to && p.from < to {
			textMay, idMay = textMay || p.text, idMay || !p.text
		}
	}
	if o.lists && textMay { // levels without a checksum: lists may have other elements
		if rowsOf(docs) != rowsOf(o.docs) {
			return "", fmt.Errorf("%d rows instead of %d", rowsOf(docs), rowsOf(o.docs))
		}
		return "other bytes", nil
	}
	if len(docs) != len(o.docs) {
		return "", fmt.Errorf("%d documents instead of %d", len(docs), len(o.docs))
	}
	for i, want := range o.docs {
		got := docs[i]
		sameText := got.row == want.row && got.chunk == want.chunk && got.failure() == want.failure() && bytes.Equal(got.text, want.text)
		if !sameText && !textMay || got.row != want.row {
			return "", fmt.Errorf("document %d is %+v instead of %+v", i, got, want)
		}
		// A name of the id column that was changed leaves a corpus without ids, and an annotation
		// that was changed shows the same bytes as another type: a footer has no checksum.
		if !bytes.Equal(got.raw, want.raw) && got.id != "" && !idMay {
			return "", fmt.Errorf("document %d has the id %s instead of %s", i, got.id, want.id)
		}
	}
	if slices.EqualFunc(docs, o.docs, func(a, b kindDoc) bool { return bytes.Equal(a.text, b.text) && a.id == b.id }) {
		return "as before", nil
	}
	return "other bytes", nil
}

func rowsOf(docs []kindDoc) int64 {
	if len(docs) == 0 {
		return 0
	}
	return docs[len(docs)-1].row + 1
}

// mutate changes some bytes; from and to bound the places that differ.
func mutate(r *rand.Rand, o *original) (b []byte, from, to int, what string) {
	b = slices.Clone(o.bytes)
	n := len(b)
	footer := n - 8 - int(binary.LittleEndian.Uint32(b[n-8:]))
	// Where: anywhere, in the footer, at the start, in front of a page's body.
	at := r.IntN(n)
	switch r.IntN(5) {
	case 0:
		at = footer + r.IntN(n-footer)
	case 1:
		at = r.IntN(min(n, 64))
	case 2:
		if len(o.pages) > 0 {
			at = max(0, o.pages[r.IntN(len(o.pages))].from-1-r.IntN(40))
		}
	}
	length := min(1+r.IntN(1<<r.IntN(9)), n-at)
	to = at + length
	switch kind := r.IntN(9); kind {
	case 0:
		return b[:at], at, n, fmt.Sprintf("cut at %d", at)
	case 1: // the middle is missing
		return slices.Delete(b, at, to), at, n, fmt.Sprintf("%d bytes deleted at %d", length, at)
	case 2:
		return slices.Insert(b, at, b[at:to]...), at, n, fmt.Sprintf("%d bytes repeated at %d", length, at)
	case 3: // two places change theirs
		other := r.IntN(n - length + 1)
		tmp := slices.Clone(b[at:to])
		copy(b[at:to], b[other:other+length])
		copy(b[other:other+length], tmp)
		return b, min(at, other), max(to, other+length), fmt.Sprintf("%d bytes at %d and %d swapped", length, at, other)
	case 4:
		fill := []byte{0, 0xff, 0x80, 0x7f}[r.IntN(4)]
		for i := at; i < to; i++ {
			b[i] = fill
		}
		return b, at, to, fmt.Sprintf("%d bytes at %d set to %d", length, at, fill)
	case 5, 6:
		bit := byte(1) << r.IntN(8)
		b[at] ^= bit
		return b, at, at + 1, fmt.Sprintf("bit %d at %d flipped", bit, at)
	default:
		v := byte(r.UintN(256))
		b[at] = v
		return b, at, at + 1, fmt.Sprintf("byte at %d set to %d", at, v)
	}
}

// pagesOf finds the page bodies of the columns text and id.
func pagesOf(t *testing.T, b []byte) []page {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	must(t, err)
	var all []page
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			m := &c.MetaData
			if m.NumValues == 0 {
				continue
			}
			at := m.DataPageOffset
			if d := m.DictionaryPageOffset; d > 0 && d < at {
				at = d
			}
			for end := at + m.TotalCompressedSize; at < end; {
				size, err := wire.StructSize(b[at:])
				must(t, err)
				var h format.PageHeader
				must(t, thrift.Unmarshal(&thrift.CompactProtocol{}, b[at:at+int64(size)], &h))
				at += int64(size)
				all = append(all, page{int(at), int(at) + int(h.CompressedPageSize), m.PathInSchema[0] == "text", h.CRC != 0})
				at += int64(h.CompressedPageSize)
			}
		}
	}
	return all
}

// peakMemory is the most resident memory that this process had.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("there is no /proc to read the memory from")
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	must(t, err)
	return kb << 10
}
