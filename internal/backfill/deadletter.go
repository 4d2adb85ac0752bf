package backfill

import (
	"fmt"

	"localembed/internal/corpus"
	"localembed/internal/shard"
)

// tooLong is the dead letter class of a text over the token limit, with
// --on-long error.
const tooLong = "too_long"

// inputClasses are the dead letter classes that the text alone decides, as the
// report lists them.
var inputClasses = []string{
	corpus.NullText.String(), corpus.EmptyText.String(), corpus.InvalidUTF8.String(), corpus.TooBig.String(), tooLong,
}

// collectFailed makes the window's dead letters. It copies their texts, since the
// window's own text is given back before the shard is published.
func (w *window) collectFailed() {
	for _, d := range w.dead() {
		text := w.Text.At(int(d))
		w.bad.Append(text[:min(len(text), shard.MaxFailedText)])
		w.failed = append(w.failed, shard.Failed{
			Doc: d, Class: w.class[d], Message: w.message(d), TextBytes: w.TextBytes[d],
		})
	}
	for i := range w.failed {
		if w.class[w.failed[i].Doc] != corpus.NullText.String() {
			w.failed[i].Text = w.bad.At(i)
		}
	}
}

// message says in a sentence why a document got no vector.
func (w *window) message(doc int32) string {
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
