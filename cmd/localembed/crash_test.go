package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/shard"
)

// zebra is the token id of the word in MiniLM's vocabulary.
const zebra = 29145

// A text that ends the process is found by running batches alone, and is dead in the
// end; every other text is embedded.
func TestATextThatEndsTheProcess(t *testing.T) {
	p := newProcess(t, 120)
	var corpus []corpusRow
	for i := range 120 {
		text := fmt.Sprintf("text %d", i)
		if i == 70 {
			text = "a zebra"
		}
		corpus = append(corpus, corpusRow{ID: int64(i), Text: &text})
	}
	if err := parquet.WriteFile(filepath.Join(p.dir, "corpus.parquet"), corpus); err != nil {
		t.Fatal(err)
	}
	p.exit = 3
	drill := []string{"--devices", fmt.Sprintf("fake:2,crash=%d", zebra), "--batch-items", "8"}
	deaths := 0
	for ; deaths < 60; deaths++ {
		c, stdout, stderr := p.start(p.out, drill...)
		err := c.Wait()
		if err == nil || c.ProcessState.Exited() {
			if code := c.ProcessState.ExitCode(); code != 3 {
				t.Fatalf("exit %d: %v\n%s", code, err, stderr)
			}
			r := p.report(stdout)
			if r.RowsEmbedded != 119 || r.RowsDeadLettered["crashed_device"] != 1 || r.RowsDeadLettered["total"] != 1 {
				t.Errorf("%d rows, dead letters %v", r.RowsEmbedded, r.RowsDeadLettered)
			}
			break
		}
	}
	// Two deaths turn a run careful; each of 8, 4, 2 and 1 texts is alone at three.
	if deaths < 12 || deaths > 18 {
		t.Errorf("the process died %d times", deaths)
	}
	type letter struct {
		ID       int64  `parquet:"id"`
		Class    string `parquet:"class"`
		Attempts int32  `parquet:"attempts"`
	}
	letters, err := parquet.ReadFile[letter](filepath.Join(p.out, shard.FailuresDir, "part-000001.parquet"))
	if err != nil || len(letters) != 1 || letters[0] != (letter{70, "crashed_device", 3}) {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
}
