package tokenize

import (
	"encoding/json"
	"strings"
)

// runs says how a text without words may be cut inside a long run of plain
// characters: ASCII letters and digits, and ideographs where the tokens are whole
// characters. The zero value says not at all.
//
// A model's token covers at most span characters of a run. So of span places side by
// side in it, at least one lies between two tokens of the whole text, and the tokens
// before that place are those of the part before it: BPE joins nothing across it, so
// that both sides are merged as if alone, and the best path to a place of Unigram's
// lattice looks at nothing behind it. Which of the places it is, is not known; but if
// the parts before all of them have the same first ids, those are the whole text's.
//
// The run goes on for margin bytes on both sides of the places, so that no added
// token, contraction or combining mark reaches them, and the pieces that the
// pre-tokenizer makes of a part are the whole text's, the last one cut.
type runs struct {
	span, margin int
	ideographs   bool
}

// safeRuns finds out from tokenizer.json whether the argument holds. safeWordCuts does
// already: of its parts those stay out that look far ahead or at a piece's end.
func safeRuns(c *config) runs {
	var none runs
	m := &c.Model
	if m.Type != "BPE" && m.Type != "Unigram" || m.ByteFallback || m.IgnoreMerges || m.FuseUnk || m.WordPrefix != "" || m.WordSuffix != "" || looksAtCase(c.PreTokenizer) {
		return none
	}
	found := runs{margin: 8, ideographs: m.Type == "Unigram" && keepsIdeographs(c.Normalizer)}
	for _, t := range c.AddedTokens {
		if t.Normalized && hasStep(c.Normalizer, "Replace") || strings.IndexFunc(t.Content, func(r rune) bool { return !found.plain(r) }) < 0 {
			return none
		}
		found.margin = max(found.margin, len(t.Content))
	}
	var pieces map[string]json.RawMessage
	if json.Unmarshal(m.Vocab, &pieces) != nil {
		var list [][]any
		if json.Unmarshal(m.Vocab, &list) != nil {
			return none
		}
		pieces = map[string]json.RawMessage{}
		for _, one := range list {
			if piece, ok := one[0].(string); ok {
				pieces[piece] = nil
			}
		}
	}
	letters := 0 // BPE leaves out what it does not know, and joins what stands around it
	for piece := range pieces {
		if len(piece) == 1 && found.plain(rune(piece[0])) {
			letters++
		}
		length := 0
		for _, r := range piece {
			length++
			if !found.plain(r) {
				length = 0
			}
			found.span = max(found.span, length)
		}
	}
	if found.span == 0 || found.span > 64 || m.Type == "BPE" && letters < 62 {
		return none
	}
	return found
}

func (r runs) plain(c rune) bool {
	return c < 128 && (isLetter(byte(c)) || c >= '0' && c <= '9') || r.ideographs && c >= 0x4E00 && c <= 0x9FFF
}

// places are span places in the first run at or after from that is long enough, nil
// if there is none before limit.
func (r runs) places(text []byte, from, limit int) []int {
	var places []int
	start, behind := -1, 0 // of the run, and the bytes of it behind the last place
	for i, c := range string(text[from:limit]) {
		at := from + i
		switch {
		case !r.plain(c):
			start, behind, places = -1, 0, places[:0]
			continue
		case start < 0:
			start = at
		}
		if at-start < r.margin {
			continue
		}
		if len(places) < r.span {
			places = append(places, at)
		} else if behind++; behind > r.margin {
			return places
		}
	}
	return nil
}

// looksAtCase says whether a pattern tells capital letters, so that it goes back over
// many characters when none of the small ones follows.
func looksAtCase(p *preTokenizer) bool {
	for i := range p.PreTokenizers {
		if looksAtCase(&p.PreTokenizers[i]) {
			return true
		}
	}
	return strings.Contains(p.Pattern.Regex, `\p{Lu}`)
}

// keepsIdeographs says whether a normalizer of those that keepsWords knows leaves each
// ideograph as the one character that it is.
func keepsIdeographs(n *normalizer) bool {
	if n == nil {
		return true
	}
	for i := range n.Normalizers {
		if !keepsIdeographs(&n.Normalizers[i]) {
			return false
		}
	}
	return n.Type != "BertNormalizer" && (n.Type != "Precompiled" || charsmapKeepsIdeographs(n.Charsmap))
}
