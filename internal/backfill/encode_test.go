package backfill

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/shard"
	"localembed/internal/tokenize"
)

// refusing is a tokenizer that does not take some texts.
type refusing struct{ Tokenizer }

func (r refusing) Encode(ctx context.Context, texts *column.Arena, docs []int32, out *tokenize.Tokens) error {
	for _, d := range docs {
		if bytes.Contains(texts.At(int(d)), []byte("unspeakable")) {
			return &tokenize.DocumentError{Document: d, Err: errors.New("no word for it")}
		}
	}
	return r.Tokenizer.Encode(ctx, texts, docs, out)
}

// A text that the tokenizer refuses, or gives ids that the model does not have, is a dead
// letter in a plan and in each run; the others are embedded.
func TestTextsThatMakeNoTokens(t *testing.T) {
	const zebra = 29145 // its id in the vocabulary
	rows := numbered(0, 120)
	for row, text := range map[int]string{10: "a zebra", 20: "unspeakable", 60: "a zebra", 70: "unspeakable too", 110: "unspeakable"} {
		rows[row].Text = &text
	}
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeCorpus(t, path, rows)
	j := newJob(t, path)
	j.vocab, j.refuses = zebra, true
	planned, err := Plan(context.Background(), j.options(context.Background()), true)
	if err != nil {
		t.Fatal(err)
	}
	r := j.run()
	if r.RowsDeadLettered["not_tokenized"] != 5 || r.RowsDeadLettered["total"] != 5 || r.RowsEmbedded != 115 || planned.RowsDeadLettered["not_tokenized"] != 5 {
		t.Errorf("%d rows embedded, dead letters %v, planned %v", r.RowsEmbedded, r.RowsDeadLettered, planned.RowsDeadLettered)
	}
	letters, _, err := shard.ReadFailures(vfs.Default, shard.FailuresPath(vfs.Default, j.out, 0))
	if err != nil || len(letters) != 2 || !strings.Contains(letters[0].Message, "the id 29145, but the model has only 29145 tokens") || !strings.Contains(letters[1].Message, "no word for it") {
		t.Errorf("letters %+v, %v", letters, err)
	}
	j.closed = true
	if r := j.run(); r.ShardsWritten != 0 || r.VectorsComputed != 0 || r.RowsDeadLettered["not_tokenized"] != 5 {
		t.Errorf("the second run wrote %d shards, dead letters %v", r.ShardsWritten, r.RowsDeadLettered)
	}
}

// A tokenizer that refuses text after text is broken: the run stops.
func TestABrokenTokenizerStops(t *testing.T) {
	rows := numbered(0, 40)
	for i := range rows {
		rows[i].Text = str("unspeakable %d", i)
	}
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeCorpus(t, path, rows)
	j := newJob(t, path)
	j.refuses = true
	if _, err := Run(context.Background(), j.options(context.Background())); !fault.Is(err, fault.ModelRefused) || !strings.Contains(err.Error(), "no word for it") {
		t.Errorf("got %v", err)
	}
}
