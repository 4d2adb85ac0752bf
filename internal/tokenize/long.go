package tokenize

import (
	"slices"
	"unicode/utf8"

	"localembed/internal/column"
)

// firstBytesPerToken is how much of a long text is tokenized first, for a token of
// the limit: English has four to five bytes a token, and what is too little doubles.
const firstBytesPerToken = 8

// encodeChunk is native.encode, but where texts may be cut in front of words, of
// each long one only as much is encoded as fills the limit.
func (t *Tokenizer) encodeChunk(texts *column.Arena, docs []int32, out chunk) (int, error) {
	if !t.limits.words {
		return t.native.encode(t.limits, texts, docs, out)
	}
	done, ids := 0, int64(0)
	for done < len(docs) {
		rest := chunk{out.ids[ids:], out.ends[done:], out.truncated[done:]}
		n := 0
		for done+n < len(docs) && !t.isLong(texts.At(int(docs[done+n]))) {
			n++
		}
		var err error
		if n > 0 {
			n, err = t.native.encode(t.limits, texts, docs[done:done+n], rest)
		} else if err = t.encodeLong(texts, docs[done], rest); err == nil {
			n = 1
		}
		for i := range n {
			rest.ends[i] += ids
		}
		done += n
		if err != nil {
			return done, err
		}
		ids = rest.ends[n-1]
	}
	return done, nil
}

// isLong says whether it is worth while to cut a text. One that is not UTF-8 is not
// cut, so that it fails wherever the byte in question stands.
func (t *Tokenizer) isLong(text []byte) bool {
	return len(text)/firstBytesPerToken >= t.limits.maxTokens && utf8.Valid(text)
}

func (t *Tokenizer) encodeLong(texts *column.Arena, doc int32, out chunk) error {
	text := texts.At(int(doc))
	return growPrefix(text, t.limits.maxTokens*firstBytesPerToken, func(from, end int) (bool, error) {
		// Where the parts before the places do not agree twice, they may never do.
		for unlike := 0; from < end && unlike < 2; from *= 2 {
			places := t.limits.runs.places(text, from, end)
			if places == nil {
				break
			}
			from = places[0]
			agree, long, err := t.encodePlaces(texts, doc, places, out)
			if err != nil || agree {
				return agree, err
			}
			if long {
				unlike++
			}
		}
		err := t.encodePrefix(texts, doc, end, out)
		return out.truncated[0], err
	})
}

// encodePlaces encodes the parts of a text before each place. It reports whether all
// agree, which is that they pass the limit with the same ids, and whether the first
// one passes it.
func (t *Tokenizer) encodePlaces(texts *column.Arena, doc int32, places []int, out chunk) (agree, long bool, err error) {
	var first []uint32
	for i, end := range places {
		if err := t.encodePrefix(texts, doc, end, out); err != nil || !out.truncated[0] {
			return false, i > 0, err
		}
		ids := out.ids[:out.ends[0]]
		if i == 0 {
			first = slices.Clone(ids)
		} else if !slices.Equal(first, ids) {
			return false, true, nil
		}
	}
	return true, true, nil
}

// encodePrefix encodes the first end bytes of a text.
func (t *Tokenizer) encodePrefix(texts *column.Arena, doc int32, end int, out chunk) error {
	start := int64(0)
	if doc > 0 {
		start = texts.Ends[doc-1]
	}
	part := column.Arena{Data: texts.Data, Ends: []int64{start, start + int64(end)}}
	_, err := t.native.encode(t.limits, &part, []int32{1}, out)
	return err
}

// growPrefix tries prefixes of a text, each at least twice as long as the one
// before, until one is enough or is the text.
func growPrefix(text []byte, from int, try func(from, end int) (enough bool, err error)) error {
	for {
		end := nextWord(text, from)
		enough, err := try(from, end)
		if err != nil || enough || end == len(text) {
			return err
		}
		from = 2 * end
	}
}

// nextWord is the first place at or after from where safeWordCuts allows a cut, or
// the text's end.
func nextWord(text []byte, from int) int {
	for i := max(from, 2); i+1 < len(text); i++ {
		if text[i] == ' ' && isLetter(text[i-1]) && isLetter(text[i+1]) && text[i-2] >= ' ' && text[i-2] < 127 {
			return i
		}
	}
	return len(text)
}

func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
