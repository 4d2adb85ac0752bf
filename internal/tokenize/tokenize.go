// Package tokenize turns texts into token ids with the tokenizer.json of a model
// folder, by the same Rust library that sentence-transformers uses.
//
// It guarantees:
//
//   - The ids are those of the whole text cut to the limit: the prompt and the
//     special tokens count, the prompt is never cut, and the special tokens that
//     close a text stay. The truncation and padding that tokenizer.json carries
//     play no part, and there is no padding in the result.
//   - Every document has at least one id, each below VocabSize; a document that
//     cannot be encoded is an error that names it. U+0000 is a character like any
//     other.
//   - The result depends on the texts alone, not on the number of cores.
//   - A long text costs no more than a few dozen times its part within the limit,
//     whatever it is made of, but for white space and combining marks: by safeCuts for
//     BERT's kind of tokenizer, by safeParts for byte-level BPE, SentencePiece's and
//     others. A tokenizer outside these arguments takes texts whole.
//
// Texts come in and ids go out as flat memory, and one call into the library
// encodes hundreds of documents.
package tokenize

import (
	"math"

	"localembed/internal/column"
	"localembed/internal/fault"
)

// Options are the parts of the recipe that decide the ids.
type Options struct {
	MaxTokens int    // most ids a document has, special tokens and prompt included; at least 1
	Prompt    string // put before every text as it is
}

// firstBytesPerToken is how much of a long text is tokenized first, for a token of
// the limit: English has four to five bytes a token, and what is too little grows.
const firstBytesPerToken = 8

// Tokenizer encodes texts. It may be used by several goroutines at once, but not
// after Close.
type Tokenizer struct {
	native  *native
	threads threads
	facts   facts
	limits  limits
	padID   uint32
}

// Open loads a tokenizer.json. Its errors are of class model_refused and name no
// file, which the caller knows.
func Open(tokenizerJSON []byte, o Options) (*Tokenizer, error) {
	if o.MaxTokens < 1 {
		return nil, fault.New(fault.Usage, "a limit of %d tokens leaves nothing to embed", o.MaxTokens).
			Hinting("give --max-tokens a number above 0")
	}
	if len(tokenizerJSON) > math.MaxInt32 {
		return nil, refused("tokenizer.json has %d bytes", len(tokenizerJSON))
	}
	c, plain, err := readConfig(tokenizerJSON)
	if err != nil {
		return nil, refused("tokenizer.json cannot be read").Because(err)
	}
	n, err := loadNative(plain)
	if err != nil {
		return nil, refused("tokenizer.json cannot be used").Because(err)
	}
	t := &Tokenizer{native: n, threads: newThreads(), padID: c.padID()}
	if err := t.prepare(o, &c); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// prepare checks that the limit leaves room for a text and fixes how texts are encoded.
func (t *Tokenizer) prepare(o Options, c *config) error {
	var err error
	if t.facts, err = t.native.describe(); err != nil {
		return refused("tokenizer.json cannot be used").Because(err)
	}
	fixed := t.facts.head + t.facts.tail
	if o.Prompt != "" {
		if fixed, err = t.promptTokens(o.Prompt); err != nil {
			return err
		}
	}
	if fixed >= o.MaxTokens {
		return fault.New(fault.Usage, "a limit of %d tokens leaves no room for a text: the prompt and the special tokens alone are %d", o.MaxTokens, fixed).
			Hinting("raise --max-tokens, or use a shorter prompt")
	}
	t.limits = limits{prompt: o.Prompt, maxTokens: o.MaxTokens, firstBytes: o.MaxTokens * firstBytesPerToken, tail: t.facts.tail, cuts: safeCuts(c)}
	if t.limits.cuts == (cuts{}) {
		t.native.prepareParts(safeParts(c))
	}
	return nil
}

// promptTokens is the number of tokens of the prompt alone, special tokens included.
func (t *Tokenizer) promptTokens(prompt string) (int, error) {
	var text column.Arena
	text.Append([]byte(prompt))
	room := newChunk(1, len(prompt)*8+t.facts.head+t.facts.tail+4)
	if _, err := t.native.encode(limits{maxTokens: len(room.ids), firstBytes: len(prompt), tail: t.facts.tail}, &text, []int32{0}, &room); err != nil {
		return 0, fault.New(fault.Usage, "the prompt %q cannot be tokenized", prompt).Because(err).
			Hinting("use another prompt")
	}
	return int(room.ends[0]), nil
}

// VocabSize is the largest token id plus one: the rows that the model's embedding
// table must have.
func (t *Tokenizer) VocabSize() int { return t.facts.vocab }

// PadID is the token id that fills up the shorter texts of a batch.
func (t *Tokenizer) PadID() uint32 { return t.padID }

// Close frees the tokenizer. Nobody may be in Encode.
func (t *Tokenizer) Close() {
	if t.native != nil {
		close(t.threads)
		t.native.close()
		t.native = nil
	}
}

func refused(format string, args ...any) *fault.Error {
	return fault.New(fault.ModelRefused, format, args...).
		Hinting("take the folder as its hub has it: tokenizer.json must be complete and of version 1.0")
}
