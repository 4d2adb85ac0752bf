package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/tokenize"
)

// mostRefused is how many texts of a window a tokenizer may refuse: one that refuses
// more is broken.
const mostRefused = 10

// encode tokenizes documents. A text that the tokenizer refuses, or for which it gives an
// id that the model does not have, is a dead letter: nothing is ever computed of it.
func (p *planner) encode(ctx context.Context, w *window, docs []int32) error {
	bad := map[key.Key]string{}
	for {
		err := p.tokenizer.Encode(ctx, &w.Text, docs, &w.tokens)
		if err == nil {
			break
		}
		var refused *tokenize.DocumentError
		if !errors.As(err, &refused) {
			return err
		}
		if len(bad) == mostRefused {
			return fault.New(fault.ModelRefused, "the tokenizer refuses more than %d texts of a window", mostRefused).Because(refused.Err).
				Hinting("tokenizer.json is broken, or has no token for what it does not know: fetch the model folder again")
		}
		bad[w.keys[refused.Document]] = "the tokenizer refuses the text: " + refused.Err.Error()
		docs = slices.DeleteFunc(slices.Clone(docs), func(d int32) bool { return d == refused.Document })
	}
	for i, d := range docs {
		w.tokenOf[d] = int32(i)
		if p.vocab == 0 {
			continue
		}
		for _, id := range w.ids(d) {
			if int(id) >= p.vocab {
				bad[w.keys[d]] = fmt.Sprintf("the tokenizer gives the id %d, but the model has only %d tokens", id, p.vocab)
				break
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	for d, k := range w.keys {
		if why, ok := bad[k]; ok && w.class[d] == "" {
			w.fail(int32(d), checkpoint.Failure{Class: notTokenized, Message: why})
		}
	}
	return nil
}
