package selftest

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/testenv"
)

// distance is the length of a − b as a part of that of b; of the directions alone
// where lengths are not compared.
func distance(a []float32, b []float64, lengths bool) float64 {
	_, ratio := likeness(a, b)
	if lengths {
		ratio = 1
	}
	var dd, bb float64
	for i, x := range a {
		d := float64(x)/ratio - b[i]
		dd += d * d
		bb += b[i] * b[i]
	}
	return math.Sqrt(dd / bb)
}

// writeTable puts a table between its marks in docs/models.md.
func writeTable(t *testing.T, name, table string) {
	t.Helper()
	begin, end := "<!-- "+name+" begins -->\n", "<!-- "+name+" ends -->"
	path := filepath.Join(testenv.Root(t), "docs", "models.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks for the table of %s", path, name)
	}
	if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
