package models

import (
	"path/filepath"

	"localembed/internal/fault"
)

// minTokens is the smallest limit that leaves room for a token between two
// special ones.
const minTokens = 3

// maxTokens is the limit of a text in tokens, specials and prompt included:
// max_seq_length of sentence_bert_config.json as it is, else the tokenizer's
// model_max_length, at most the model's positions; wanted lowers or raises it,
// and the usable positions bound it in every case.
func (f *folder) maxTokens(sub string, cfg config, wanted int) (int, error) {
	usable := cfg.usablePositions()
	limit, err := f.declaredLimit(sub)
	if err != nil {
		return 0, err
	}
	if usable > 0 && (limit == 0 || limit > usable) {
		limit = usable
	}
	if wanted != 0 {
		if wanted < minTokens || (usable > 0 && wanted > usable) {
			return 0, fault.New(fault.Usage, "--max-tokens %d does not fit the model, which takes %d to %d tokens", wanted, minTokens, usable).
				Hinting("leave it out to take the folder's own limit, %d", limit)
		}
		return wanted, nil
	}
	if limit < minTokens {
		return 0, fault.New(fault.ModelRefused, "nothing in the folder says how long a text may be: no max_seq_length, model_max_length or max_position_embeddings of %d or more", minTokens).In(f.dir).
			Hinting("give --max-tokens")
	}
	return limit, nil
}

// declaredLimit is the limit that the folder declares, 0 if none.
func (f *folder) declaredLimit(sub string) (int, error) {
	var sbert struct {
		MaxSeqLength *int `json:"max_seq_length"`
	}
	if _, err := f.json(filepath.Join(sub, "sentence_bert_config.json"), &sbert); err != nil {
		return 0, err
	}
	if sbert.MaxSeqLength != nil {
		return *sbert.MaxSeqLength, nil
	}
	var tok struct {
		ModelMaxLength float64 `json:"model_max_length"` // 1e30 stands for none
	}
	if _, err := f.json(filepath.Join(sub, "tokenizer_config.json"), &tok); err != nil {
		return 0, err
	}
	if tok.ModelMaxLength < 1 || tok.ModelMaxLength > 1e9 {
		return 0, nil
	}
	return int(tok.ModelMaxLength), nil
}

// usablePositions is how many tokens the model has positions for, 0 if unknown.
// The RoBERTa kinds number them from the pad id + 1.
func (c config) usablePositions() int {
	switch c.ModelType {
	case "roberta", "xlm-roberta", "camembert", "mpnet":
		pad := 1
		if c.PadID != nil {
			pad = *c.PadID
		}
		return max(0, c.Positions-pad-1)
	}
	return max(0, c.Positions)
}
