package tokenize

import "strings"

// parts says whether long texts may be tokenized in parts, by the argument in
// native/tokenizers/src/long.rs, and where: the zero value says not at all.
type parts struct {
	allowed bool
	small   bool // only behind small letters: a pattern tells capitals
	letters bool // only between letters and digits: the normalizer replaces punctuation
}

// safeParts finds out from tokenizer.json whether the argument holds: whether all its
// parts are of kinds that read a text from left to right, by the classes of characters.
func safeParts(c *config) parts {
	p := parts{allowed: true}
	switch c.Model.Type {
	case "BPE", "Unigram", "WordPiece", "WordLevel":
	default:
		return parts{}
	}
	if c.Model.Dropout != 0 || c.Normalizer != nil && !p.normalizes(c.Normalizer) || c.PreTokenizer != nil && !p.splits(c.PreTokenizer) {
		return parts{}
	}
	return p
}

// normalizes reports whether a normalizer makes of each plain character the same
// whatever stands around it, or of each letter and digit, which it notes.
func (p *parts) normalizes(n *normalizer) bool {
	switch n.Type {
	case "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer", "Strip", "Prepend", "Precompiled":
		return true
	case "Replace":
		if n.Pattern.Regex != "" {
			return n.Pattern.Regex == " {2,}"
		}
		p.letters = p.letters || n.Pattern.String != " "
		return n.Pattern.String != "" && strings.IndexFunc(n.Pattern.String, func(r rune) bool {
			return r != ' ' && (r > 127 || !isPunctuation(byte(r)))
		}) < 0
	case "Sequence":
		for i := range n.Normalizers {
			if !p.normalizes(&n.Normalizers[i]) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// splits reports whether a pre-tokenizer ends its pieces by the classes of characters,
// and notes whether it tells capitals.
func (p *parts) splits(t *preTokenizer) bool {
	switch t.Type {
	case "BertPreTokenizer", "Whitespace", "WhitespaceSplit", "ByteLevel", "Metaspace", "Digits", "Punctuation":
		return true
	case "Split":
		if t.Pattern.String == " " {
			return true
		}
		p.small = p.small || strings.Contains(t.Pattern.Regex, `\p{Lu}`)
		pieces := t.Behavior == "Isolated" && !t.Invert || t.Behavior == "Removed" && t.Invert
		return pieces && isKnownPattern(t.Pattern.Regex)
	case "Sequence":
		for i := range t.PreTokenizers {
			if !p.splits(&t.PreTokenizers[i]) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// alternatives are what the usual patterns consist of. Each takes as many characters of
// its classes as there are; what looks ahead, or goes back, does so at white space, at
// contractions and at capitals.
var alternatives = []string{
	` ?\p{L}+`, `\p{L}+`,
	`[^\r\n\p{L}\p{N}]?\p{L}+`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
	`'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d`,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)`, `'(?i:[sdmt]|ll|ve|re)`,
	`\p{N}`, `\p{N}+`, `\p{N}{1,3}`, ` ?\p{N}+`,
	` ?[^\s\p{L}\p{N}]+`, ` ?[^\s\p{L}\p{N}]+[\r\n]*`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
	`\s*[\r\n]`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`,
}

// isKnownPattern reports whether a pattern consists of known alternatives, in whatever
// order.
func isKnownPattern(regex string) bool {
	for {
		rest, found := "", false
		for _, one := range alternatives {
			if regex == one {
				return true
			}
			if rest, found = strings.CutPrefix(regex, one+"|"); found {
				break
			}
		}
		if !found {
			return false
		}
		regex = rest
	}
}
