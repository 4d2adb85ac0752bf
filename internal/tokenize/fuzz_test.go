package tokenize

import (
	"context"
	"testing"
	"unicode/utf8"

	"localembed/internal/column"
)

func FuzzEncode(f *testing.F) {
	const limit = 24
	tokenizer := miniLM(f, Options{MaxTokens: limit})
	for _, s := range pieces {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		var texts column.Arena
		texts.Append(text)
		var out Tokens
		err := tokenizer.Encode(context.Background(), &texts, []int32{0}, &out)
		if !utf8.Valid(text) {
			if err == nil {
				t.Fatal("invalid UTF-8 was encoded")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		ids := out.At(0)
		if len(ids) < 2 || len(ids) > limit || ids[0] != cls || ids[len(ids)-1] != sep {
			t.Fatalf("ids %v", ids)
		}
		if out.Truncated[0] && len(ids) != limit {
			t.Fatalf("truncated to %d ids, the limit is %d", len(ids), limit)
		}
		for _, id := range ids {
			if int(id) >= tokenizer.VocabSize() {
				t.Fatalf("id %d is outside the vocabulary of %d", id, tokenizer.VocabSize())
			}
		}
	})
}
