package tokenize

// cuts says where a long text may be cut before it is tokenized, so that the
// part behind the token limit costs nothing. The zero value says nowhere.
type cuts struct {
	before          [128]bool // in front of these ASCII bytes
	beforeIdeograph bool      // in front of U+5000 to U+9FFF
	runEnd          int       // kept at both ends of a long run of one kind; 0 = runs stay whole
}

// longestWord is BERT's limit of characters, over which a word is one unknown
// token; runEnd twice must be more.
const longestWord = 100

// safeCuts proves from tokenizer.json where cutting cannot change a token that
// stays. It knows one family, BERT's:
//
//   - The normalizer works on single characters, or on a character with the
//     combining marks that follow it. ASCII is never part of what follows, so a
//     cut in front of an ASCII byte leaves what is before it as it was.
//   - The pre-tokenizer ends a word at white space, at ASCII punctuation, and (as
//     the normalizer puts spaces around it) at an ideograph: a cut in front of
//     one of them cuts no word.
//   - An added token such as [SEP] is found anywhere. None has white space or an
//     ideograph, and in front of the punctuation it is made of no cut is made:
//     a cut cuts no added token. None asks for a word's border (single_word).
//   - A word over longestWord characters is one unknown token, so the middle of
//     a longer run of ASCII letters and digits does not matter; nor does white
//     space's length. No added token lies inside such a run, as each has another
//     character.
//
// Whatever is not exactly this gets no cuts.
func safeCuts(c *config) cuts {
	var none cuts
	if c.PreTokenizer == nil || c.PreTokenizer.Type != "BertPreTokenizer" || c.Model.Type != "WordPiece" {
		return none
	}
	ideographs, ok := bertNormalizer(c.Normalizer)
	if !ok {
		return none
	}
	found := cuts{beforeIdeograph: ideographs}
	for b := range byte(128) {
		found.before[b] = isSpace(b) || isPunctuation(b)
	}
	if c.Model.MaxWordChars == longestWord && c.Model.UnkToken != "" {
		found.runEnd = 128
	}
	for _, t := range c.AddedTokens {
		if t.SingleWord || len(t.Content) >= longestWord {
			return none
		}
		onlyWord := true
		for _, r := range t.Content {
			if r >= 128 || r <= ' ' || r == 127 {
				return none
			}
			found.before[r] = false
			onlyWord = onlyWord && !isPunctuation(byte(r))
		}
		if onlyWord {
			found.runEnd = 0
		}
	}
	return found
}

// bertNormalizer reports whether the normalizer is BERT's, with or without a
// lower-casing step, and whether it puts spaces around ideographs.
func bertNormalizer(n *normalizer) (ideographs, ok bool) {
	if n == nil {
		return false, true
	}
	switch n.Type {
	case "BertNormalizer":
		return n.Ideographs, true
	case "Lowercase":
		return false, true
	case "Sequence":
		for i := range n.Normalizers {
			one, ok := bertNormalizer(&n.Normalizers[i])
			if !ok {
				return false, false
			}
			ideographs = ideographs || one
		}
		return ideographs, true
	default:
		return false, false
	}
}

func isSpace(b byte) bool {
	return b == ' ' || b == '\t' || b == '\n' || b == '\r'
}

func isPunctuation(b byte) bool {
	return b > ' ' && b < 127 && (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z')
}
