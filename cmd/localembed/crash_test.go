package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/shard"
	"localembed/internal/testenv"
)

// A model folder that another model is copied into while a run uses it ends the run.
func TestTheModelChangesUnderARun(t *testing.T) {
	p := newProcess(t, 400)
	model := filepath.Join(p.dir, "model")
	if err := os.CopyFS(model, os.DirFS(testenv.Model(t))); err != nil {
		t.Fatal(err)
	}
	drill := []string{"--model", model, "--devices", "fake:1,slow=20ms", "--batch-items", "2"}
	c, _, stderr := p.start(p.out, drill...)
	p.await(c, p.out, 1)
	f, err := os.OpenFile(filepath.Join(model, "model.safetensors"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{1, 2, 3}, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, before := p.committed(p.out)
	if err := c.Wait(); c.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), `"class":"bad_vectors"`) || !strings.Contains(stderr.String(), "model.safetensors") {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if _, after := p.committed(p.out); after > before+16 {
		t.Errorf("%d vectors were committed when the model changed, %d in the end", before, after)
	}
}

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
	// Each of 8, 4, 2 and 1 texts is alone at three deaths. Before, two without a commit
	// turn a run careful; every other one follows the commit of one more of 14 batches.
	if deaths < 12 || deaths > 28 {
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
