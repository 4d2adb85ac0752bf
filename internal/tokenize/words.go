package tokenize

import "strings"

// safeWordCuts proves from tokenizer.json that a text may be cut in front of a
// space that stands between two ASCII letters, if the character before those is
// ASCII and no control character: that the tokens of what is before the space are the first tokens of
// the whole text. The argument, in the order in which the library works:
//
//   - Added tokens are found first, the leftmost and longest. One lies across the
//     cut only if it has a letter followed by a space; none is allowed that has a
//     space beside another character. White space that it takes in on its left or
//     right, and its wish to stand alone, look at the cut from one side and see a
//     space or the text's end, which are alike to them.
//   - The normalizer keeps the space and both letters (but for their case), and
//     what it makes of the text before does not depend on what follows the letter
//     (see keepsWords).
//   - The pre-tokenizer ends a piece at the cut, and the pieces before it do not
//     depend on what follows (see splitsWords).
//   - The model tokenizes each piece by itself.
//
// What it is not proved for is tokenized whole.
func safeWordCuts(c *config) bool {
	switch c.Model.Type {
	case "BPE", "Unigram", "WordPiece", "WordLevel":
	default:
		return false
	}
	if c.Model.Dropout != 0 || c.PreTokenizer == nil || !splitsWords(c.PreTokenizer) {
		return false
	}
	if c.Normalizer != nil && !keepsWords(c.Normalizer) {
		return false
	}
	for _, t := range c.AddedTokens {
		if !cutsNoToken(&t, c.Normalizer) {
			return false
		}
	}
	return true
}

// cutsNoToken says whether an added token cannot lie across a cut: neither as it
// is nor, if it is compared after normalizing both, as the normalizer makes it.
func cutsNoToken(t *addedToken, n *normalizer) bool {
	if strings.Trim(t.Content, " ") == "" {
		// Spaces alone have no letter; but with nothing left of them, a token would
		// be found between any two characters.
		return t.Content != "" && (!t.Normalized || !hasStep(n, "Strip"))
	}
	for _, r := range t.Content {
		if r <= ' ' || r == 127 || r > 127 && t.Normalized {
			return false
		}
	}
	return true
}

// hasStep says whether a normalizer is of a type or has a step of it.
func hasStep(n *normalizer, kind string) bool {
	if n == nil {
		return false
	}
	for i := range n.Normalizers {
		if hasStep(&n.Normalizers[i], kind) {
			return true
		}
	}
	return n.Type == kind
}

// keepsWords reports whether a normalizer keeps the letters and the space around a
// cut, and graphic ASCII without making spaces of it.
//
// Unicode's forms, case and accents concern a character and the combining marks
// that follow it, and ASCII is no such mark. A precompiled map works on grapheme
// clusters, which is why the character before the letter has to be ASCII, and one
// that no normalizer removes: then the letter is a cluster, and so is the space. Strip works at the ends of a piece
// between added tokens, and at a cut there is a letter.
func keepsWords(n *normalizer) bool {
	switch n.Type {
	case "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer", "Strip":
		return true
	case "Precompiled":
		return charsmapKeepsASCII(n.Charsmap)
	case "Replace":
		// Of runs of spaces, or of punctuation by graphic ASCII.
		if n.Pattern.Regex != "" {
			return n.Pattern.Regex == " {2,}" && (n.Content == " " || n.Content == "▁")
		}
		return isGraphic(n.Content) && isGraphic(n.Pattern.String) && strings.IndexFunc(n.Pattern.String, func(r rune) bool {
			return !isPunctuation(byte(r))
		}) < 0
	case "Sequence":
		for i := range n.Normalizers {
			if !keepsWords(&n.Normalizers[i]) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// isGraphic says whether a text has characters, all of ASCII's visible ones.
func isGraphic(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 127 }) < 0
}

// splitsWords reports whether a pre-tokenizer ends a piece at every cut without
// looking at what follows. In a sequence one that does is enough: those behind it
// get its pieces one by one, and those before it must leave letters and spaces as
// they are and split elsewhere.
func splitsWords(p *preTokenizer) bool {
	switch p.Type {
	case "BertPreTokenizer", "Whitespace", "WhitespaceSplit":
		return true
	case "ByteLevel":
		return p.UseRegex == nil || *p.UseRegex // the pattern is GPT-2's
	case "Metaspace":
		return p.Split == nil || *p.Split
	case "Split":
		pieces := p.Behavior == "Isolated" && !p.Invert || p.Behavior == "Removed" && p.Invert
		return pieces && patternSplitsWords(p.Pattern.Regex)
	case "Sequence":
		for i := range p.PreTokenizers {
			one := &p.PreTokenizers[i]
			if splitsWords(one) {
				return true
			}
			if one.Type != "Digits" && one.Type != "Punctuation" {
				return false
			}
		}
	}
	return false
}

// Alternatives that the usual patterns consist of. Those of words match any run of
// letters, in one match or several, and so take in the letter before a cut; none of
// either kind matches a space behind a letter, and only \s+(?!\S) asks what follows,
// of white space with the cut's letter behind it at the earliest.
var (
	wordAlternatives = []string{
		` ?\p{L}+`,
		`[^\r\n\p{L}\p{N}]?\p{L}+`,
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
			`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
	}
	otherAlternatives = []string{
		`'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d`,
		`(?i:'s|'t|'re|'ve|'m|'ll|'d)`, `'(?i:[sdmt]|ll|ve|re)`,
		`\p{N}`, `\p{N}+`, `\p{N}{1,3}`, ` ?\p{N}+`,
		` ?[^\s\p{L}\p{N}]+`, ` ?[^\s\p{L}\p{N}]+[\r\n]*`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
		`\s*[\r\n]`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`,
	}
)

// patternSplitsWords reports whether a pattern consists of known alternatives, one
// of them for words. Their order does not matter.
func patternSplitsWords(regex string) bool {
	words := false
	for rest, more := regex, true; more; {
		var found, word bool
		if rest, more, found = cutAlternative(rest, wordAlternatives); found {
			word = true
		} else if rest, more, found = cutAlternative(rest, otherAlternatives); !found {
			return false
		}
		words = words || word
	}
	return words
}

// cutAlternative takes the alternative off that a pattern begins with, and says
// whether more follow it.
func cutAlternative(regex string, known []string) (rest string, more, found bool) {
	for _, one := range known {
		if regex == one {
			return "", false, true
		}
		if rest, ok := strings.CutPrefix(regex, one+"|"); ok {
			return rest, true, true
		}
	}
	return regex, true, false
}
