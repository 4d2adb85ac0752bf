package models

import (
	"cmp"
	"path/filepath"

	"localembed/internal/fault"
)

// minTokens is the smallest limit that leaves room for a token between two
// special ones.
const minTokens = 3

// maxTokens sets the limit of a text in tokens, specials and prompt included:
// max_seq_length of sentence_bert_config.json as it is, else the tokenizer's
// model_max_length, at most the model's positions; wanted lowers or raises it,
// and the usable positions bound it in every case. Rotary positions have no
// table that ends: there max_seq_length may be more than config.json names.
func (m *Model) maxTokens(f *folder, sub string, cfg config, wanted int) error {
	usable := cfg.usablePositions()
	limit, from, own, err := f.declaredLimit(sub)
	if err != nil {
		return err
	}
	if own && cfg.rotary() && limit > usable && limit <= maxRotary {
		if usable > 0 {
			m.warn("%s allows %d tokens, more than the %d positions that config.json names: longer texts are computed with positions that the model may not know", filepath.ToSlash(from), limit, usable)
		}
		usable = limit
	}
	if usable > 0 && (limit == 0 || limit > usable) {
		if limit > usable {
			m.warn("%s allows %d tokens, but the model has only %d positions", filepath.ToSlash(from), limit, usable)
		}
		limit, from = usable, filepath.Join(sub, "config.json")
	}
	if wanted != 0 {
		if wanted < minTokens || (usable > 0 && wanted > usable) {
			return fault.New(fault.Usage, "--max-tokens %d does not fit the model, which takes %d to %d tokens", wanted, minTokens, usable).
				Hinting("leave it out to take the folder's own limit, %d", limit)
		}
		limit, from = wanted, "--max-tokens"
	}
	if limit < minTokens {
		return fault.New(fault.ModelRefused, "nothing in the folder says how long a text may be: no max_seq_length, model_max_length or max_position_embeddings of %d or more", minTokens).In(f.dir).
			Hinting("give --max-tokens")
	}
	m.Recipe.MaxTokens = limit
	m.fact("max tokens", from, "%d", limit)
	return nil
}

// maxRotary is the most tokens that a table of rotary positions is made for.
const maxRotary = 1 << 20

// declaredLimit is the limit that the folder declares, 0 if none, and the file
// that does; own says that it is max_seq_length.
func (f *folder) declaredLimit(sub string) (limit int, from string, own bool, err error) {
	s, rel, err := f.sbert(sub)
	if err != nil {
		return 0, "", false, err
	}
	if s.MaxSeqLength != nil {
		return *s.MaxSeqLength, rel, true, nil
	}
	rel = filepath.Join(sub, "tokenizer_config.json")
	var tok struct {
		ModelMaxLength *float64 `json:"model_max_length"` // 1e30 stands for none
		MaxLen         *float64 `json:"max_len"`          // its old name
	}
	if _, err := f.json(rel, &tok); err != nil {
		return 0, "", false, err
	}
	limit = int(min(1e9, or(cmp.Or(tok.ModelMaxLength, tok.MaxLen), 1e9)))
	if limit < 1 || limit == 1e9 {
		return 0, "", false, nil
	}
	return limit, rel, false, nil
}

// usablePositions is how many tokens the model has positions for, 0 if unknown.
// The RoBERTa kinds number them from the pad id + 1.
func (c config) usablePositions() int {
	switch c.ModelType {
	case "roberta", "xlm-roberta", "camembert":
		return max(0, c.Positions-c.padding()-1)
	case "mpnet":
		return max(0, c.Positions-mpnetPad-1)
	}
	return max(0, c.Positions)
}

// rotary reports whether positions turn the heads instead of standing in a table.
func (c config) rotary() bool {
	make := architectures[c.ModelType]
	return make != nil && make(c).view != nil
}

// padding is the pad id of the RoBERTa kinds.
func (c config) padding() int { return or(c.PadID, 1) }
