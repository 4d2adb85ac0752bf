package backfill

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"localembed/internal/checkpoint"
	"localembed/internal/corpus"
	"localembed/internal/shard"
)

// tooLong is the dead letter class of a text over the token limit, with
// --on-long error.
const tooLong = "too_long"

// notTokenized is the dead letter class of a text of which the tokenizer makes nothing that
// the model can take.
const notTokenized = "not_tokenized"

// inputClasses are the dead letter classes that the text alone decides, as the
// report lists them.
var inputClasses = []string{
	corpus.NullText.String(), corpus.EmptyText.String(), corpus.InvalidUTF8.String(), corpus.TooBig.String(), tooLong, notTokenized,
}

// Dead letter classes of texts that no device could embed.
const (
	deviceFailed  = "device_failed"  // its batch failed whatever was done
	outOfMemory   = "out_of_memory"  // alone it took more memory than a device has
	nonFinite     = "non_finite"     // alone it got NaN or Inf
	crashedDevice = "crashed_device" // alone it ended the process, again and again
)

var deviceClasses = []string{deviceFailed, outOfMemory, nonFinite, crashedDevice}

// collectFailed makes the window's dead letters. It copies their texts, since the
// window's own text is given back before the shard is published.
func (w *window) collectFailed() {
	for _, d := range w.dead() {
		text := w.Text.At(int(d))
		w.bad.Append(text[:min(len(text), shard.MaxFailedText)])
		w.failed = append(w.failed, w.letter(d))
	}
	for i := range w.failed {
		if w.class[w.failed[i].Doc] != corpus.NullText.String() {
			w.failed[i].Text = w.bad.At(i)
		}
	}
}

// letter is the dead letter of a document, without its text.
func (w *window) letter(d int32) shard.Failed {
	return shard.Failed{Doc: d, Class: w.class[d], Attempts: w.failures[d].Attempts, Message: w.message(d), TextBytes: w.TextBytes[d]}
}

// message says in a sentence why a document got no vector.
func (w *window) message(doc int32) string {
	if f, ok := w.failures[doc]; ok {
		return f.Message
	}
	switch w.class[doc] {
	case corpus.NullText.String():
		return "the text is null"
	case corpus.EmptyText.String():
		return "the text is empty or only white space"
	case corpus.InvalidUTF8.String():
		return "the text is not valid UTF-8"
	case corpus.TooBig.String():
		return fmt.Sprintf("the text has %d bytes, more than the %d that are read", w.TextBytes[doc], corpus.MaxText)
	default:
		return "the text has more tokens than the model takes, and --on-long is error"
	}
}

// fail makes a document a dead letter by what a device or the store says of it.
func (w *window) fail(doc int32, f checkpoint.Failure) {
	if w.failures == nil {
		w.failures = map[int32]checkpoint.Failure{}
	}
	w.failures[doc], w.class[doc] = f, f.Class
}

// addFailed adds dead letters that were found after the window's text was given back:
// the corpus reads their texts again.
func (w *window) addFailed(ctx context.Context, c *corpus.Corpus, docs []int32) error {
	refs := make([]corpus.Ref, len(docs))
	for i, d := range docs {
		refs[i] = corpus.Ref{File: w.File[d], Row: w.Row[d]}
		if w.Chunk != nil {
			refs[i].Chunk = w.Chunk[d]
		}
	}
	texts, err := c.Texts(ctx, refs)
	if err != nil {
		return err
	}
	for i, d := range docs {
		letter := w.letter(d)
		letter.Text = texts[i][:min(len(texts[i]), shard.MaxFailedText)]
		w.failed = append(w.failed, letter)
	}
	slices.SortFunc(w.failed, func(a, b shard.Failed) int { return cmp.Compare(a.Doc, b.Doc) })
	return nil
}
