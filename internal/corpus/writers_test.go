package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRealWriters reads what pyarrow, pandas, polars and DuckDB write, with
// every codec, both page versions and all encodings of strings.
func TestRealWriters(t *testing.T) {
	python := filepath.Join(repoRoot(t), ".cache", "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("there is no Python with the writers: run make test, which makes one")
	}
	dir := t.TempDir()
	script, err := os.Open(filepath.Join("testdata", "writers.py")) // read here, so that a change of it counts as one
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.Command(python, "-", dir)
	cmd.Stdin = script
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var sums map[string]string
	if err := json.Unmarshal(out, &sums); err != nil {
		t.Fatal(err)
	}
	r := readCorpus(t, Options{Args: []string{dir}, WindowDocs: 1000})
	if len(r.corpus.Files()) != len(sums) || len(sums) < 30 || int(r.rows) != 2500*len(sums) {
		t.Fatalf("%d files with %d rows, %d written", len(r.corpus.Files()), r.rows, len(sums))
	}
	hashes := map[string][]byte{}
	for i, text := range r.texts {
		b := binary.LittleEndian.AppendUint32(hashes[r.names[i]], uint32(len(text)))
		if r.failure[i] == NullText {
			b = append(hashes[r.names[i]], 0xff, 0xff, 0xff, 0xff)
		}
		hashes[r.names[i]] = append(b, text...)
		if id := r.columns[0][i][0].Int64(); id != r.refs[i].Row {
			t.Fatalf("%s, row %d has the id %d", r.names[i], r.refs[i].Row, id)
		}
	}
	for name, want := range sums {
		got := sha256.Sum256(hashes[name])
		if hex.EncodeToString(got[:]) != want {
			t.Errorf("%s reads back other texts", name)
		}
	}
}
