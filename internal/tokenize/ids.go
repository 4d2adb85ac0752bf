package tokenize

import (
	"context"

	"localembed/internal/column"
)

// IDs are the ids of one text with special tokens and without a limit, by a
// tokenizer.json: what a prompt alone is.
func IDs(tokenizerJSON []byte, text string) ([]uint32, error) {
	// A token is at least a byte of what the text becomes; no normalizer makes
	// more than eight bytes of one.
	t, err := Open(tokenizerJSON, Options{MaxTokens: 8*len(text) + 64})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var texts column.Arena
	texts.Append([]byte(text))
	var out Tokens
	if err := t.Encode(context.Background(), &texts, []int32{0}, &out); err != nil {
		return nil, err
	}
	return out.At(0), nil
}
