package main

import (
	"bytes"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

var library = sync.OnceValues(func() ([]document, error) {
	return standardLibrary(filepath.Join(build.Default.GOROOT, "src"))
})

// corpus runs the program and reads its file back.
func corpus(t *testing.T) (file string, docs []document) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "made", "corpus.parquet")
	var stderr bytes.Buffer
	if err := run([]string{"-o", file}, &stderr); err != nil {
		t.Fatal(err)
	}
	docs, err := parquet.ReadFile[document](file)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d texts", len(docs)); !strings.Contains(stderr.String(), want) {
		t.Errorf("%d rows, but the program said %q", len(docs), stderr.String())
	}
	return file, docs
}

// derived is what the program would write for -texts and -long.
func derived(t *testing.T, texts, long int) []document {
	t.Helper()
	docs, err := library()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := derive(docs, texts, long)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(rows)
}

// checkIDs finds ids that stand twice and texts that are blank or no UTF-8.
func checkIDs(t *testing.T, docs []document) {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range docs {
		if seen[d.ID] {
			t.Errorf("id %q occurs twice", d.ID)
		}
		seen[d.ID] = true
		if strings.TrimSpace(d.Text) == "" || !utf8.ValidString(d.Text) {
			t.Errorf("%s: blank or invalid text %.80q", d.ID, d.Text)
		}
	}
}

func TestDemoCorpus(t *testing.T) {
	file, docs := corpus(t)
	checkIDs(t, docs)
	if n := len(withoutDuplicates(docs)); n < 5000 {
		t.Errorf("%d distinct texts, want at least 5 000", n)
	}
	byID := map[string]string{}
	for _, d := range docs {
		byID[d.ID] = d.Text
	}
	for id, start := range map[string]string{
		"net/http":               "Package http provides HTTP client and server implementations.",
		"net/http.Client.Do":     "Do sends an HTTP request and returns an HTTP response",
		"bufio.NewScanner":       "NewScanner returns a new [Scanner] to read from r.",
		"net/http.MethodGet":     "Common HTTP methods.",
		"io.EOF":                 "EOF is the error returned by Read",
		"runtime/cgo.Incomplete": "Incomplete is used specifically for the semantics of incomplete C types.", // there with cgo only
	} {
		if !strings.HasPrefix(byID[id], start) {
			t.Errorf("%s: got %.80q, want it to start with %q", id, byID[id], start)
		}
	}

	again := filepath.Join(t.TempDir(), "again.parquet")
	if _, err := write(again, slices.Values(derived(t, 0, 0))); err != nil {
		t.Fatal(err)
	}
	a, errA := os.ReadFile(file)
	b, errB := os.ReadFile(again)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the library read and written twice gave different bytes (%v, %v)", errA, errB)
	}
}

func TestDerivedCorpus(t *testing.T) {
	const n = 20_000
	docs := derived(t, n, 0)
	checkIDs(t, docs)
	if got := len(withoutDuplicates(docs)); len(docs) != n || got != n {
		t.Errorf("%d texts, %d distinct, want %d of both", len(docs), got, n)
	}
	// Later rounds are pairs, in every length.
	short, long := 0, 0
	for _, d := range docs[n/2:] {
		if len(d.Text) < 200 {
			short++
		}
		if len(d.Text) > 1000 {
			long++
		}
	}
	if short < n/100 || long < n/100 {
		t.Errorf("of %d pairs %d are under 200 bytes and %d over 1 000: not natural lengths", n/2, short, long)
	}
}

// Every pair there is must have its own text; a small library makes them all.
func TestEveryPairIsDistinct(t *testing.T) {
	docs, err := library()
	if err != nil {
		t.Fatal(err)
	}
	few := withoutDuplicates(docs)[:100]
	all := slices.Collect(pairs(few))
	checkIDs(t, all)
	if got := len(withoutDuplicates(all)); len(all) != 100*100 || got != len(all) {
		t.Errorf("%d pairs, %d distinct, want 10 000 of both", len(all), got)
	}
}

func TestLongTexts(t *testing.T) {
	const size = 2 << 20
	docs := derived(t, 3500, size)
	checkIDs(t, docs)
	if len(docs) != 3503 || len(withoutDuplicates(docs)) != len(docs) {
		t.Fatalf("%d texts, want 3 503 distinct ones", len(docs))
	}
	for _, at := range []int{1023, 2047, 3071} {
		if d := docs[at]; len(d.Text) <= size-utf8.UTFMax || len(d.Text) > size {
			t.Errorf("row %d (%s) has %d bytes, want %d", at, d.ID, len(d.Text), size)
		}
	}
}

func TestRefusedCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "corpus.parquet")
	for want, args := range map[string][]string{
		"-o FILE":         {},
		"take a number":   {"-o", file, "-texts", "-1"},
		"other arguments": {"-o", file, "more"},
		"not-a-flag":      {"-not-a-flag"},
		"not a directory": {"-o", "/dev/null/corpus.parquet"},
	} {
		err := run(args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", args, err, want)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%q left a file", args)
		}
	}
	docs, err := library()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := derive(docs, len(docs)*len(docs), 0); err == nil || !strings.Contains(err.Error(), "ask for fewer") {
		t.Errorf("more texts than can be made: got %v", err)
	}
}
