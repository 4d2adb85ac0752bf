package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// config is what this package reads of tokenizer.json by itself; the library
// reads the rest.
type config struct {
	Padding      *padding      `json:"padding"`
	AddedTokens  []addedToken  `json:"added_tokens"`
	Normalizer   *normalizer   `json:"normalizer"`
	PreTokenizer *preTokenizer `json:"pre_tokenizer"`
	Model        modelConfig   `json:"model"`
}

type padding struct {
	PadID uint32 `json:"pad_id"`
}

type addedToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
}

type normalizer struct {
	Type        string       `json:"type"`
	CleanText   bool         `json:"clean_text"`
	Ideographs  bool         `json:"handle_chinese_chars"`
	Normalizers []normalizer `json:"normalizers"`
	Pattern     pattern      `json:"pattern"`
}

type preTokenizer struct {
	Type          string         `json:"type"`
	PreTokenizers []preTokenizer `json:"pretokenizers"`
	Pattern       pattern        `json:"pattern"`
	Behavior      string         `json:"behavior"`
	Invert        bool           `json:"invert"`
}

// pattern is one of the two.
type pattern struct {
	String string
	Regex  string
}

type modelConfig struct {
	Type         string  `json:"type"`
	UnkToken     string  `json:"unk_token"`
	MaxWordChars int     `json:"max_input_chars_per_word"`
	Dropout      float64 `json:"dropout"`
}

// readConfig returns what is read here, and the same JSON without its own
// truncation and padding: both are decided by the model folder's limit, which
// they often contradict, and padding would be stored as if it were text.
func readConfig(tokenizerJSON []byte) (config, []byte, error) {
	var c config
	if err := json.Unmarshal(tokenizerJSON, &c); err != nil {
		return c, nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(tokenizerJSON, &fields); err != nil {
		return c, nil, err
	}
	if fields["model"] == nil {
		return c, nil, errors.New("it has no model")
	}
	fields["truncation"] = json.RawMessage("null")
	fields["padding"] = json.RawMessage("null")
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return c, nil, fmt.Errorf("rewriting it: %w", err)
	}
	return c, out.Bytes(), nil
}

// padID is the id that fills up a batch: that of the file's own padding, or of
// the added token with a usual name; 0 where there is none, since a mask hides it.
func (c *config) padID() uint32 {
	if c.Padding != nil {
		return c.Padding.PadID
	}
	for _, name := range []string{"[PAD]", "<pad>", "<|endoftext|>"} {
		for _, t := range c.AddedTokens {
			if t.Content == name {
				return t.ID
			}
		}
	}
	return 0
}
