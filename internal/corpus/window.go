package corpus

import (
	"unicode"
	"unicode/utf8"

	"localembed/internal/column"
)

// Failure says why a document cannot be embedded. Its String is the class of
// the dead letter.
type Failure uint8

const (
	None Failure = iota
	NullText
	EmptyText
	InvalidUTF8
	TooBig
)

func (f Failure) String() string {
	return [...]string{"", "null_text", "empty_text", "invalid_utf8", "too_big"}[f]
}

const (
	// MaxText is the size of the longest text that is embedded.
	MaxText = 64 << 20
	// KeptText is how much of a failed document's text is held.
	KeptText = 64 << 10
)

// NoChunk is the place of a null or empty list's one document.
const NoChunk = -1

// Window is consecutive documents of the corpus, as flat memory. All slices
// have one entry per document.
type Window struct {
	Index     int          // from 0
	Rows      int64        // corpus rows whose first document is in this window
	Text      column.Arena // of a failed document the first KeptText bytes
	TextBytes []int64      // true size of each text
	Failure   []Failure
	File      []int32 // place in Corpus.Files
	Row       []int64 // within the file, from 0
	Chunk     []int32 // place in the row's list, or NoChunk; nil unless the corpus is chunked
	Columns   *column.Set

	bytes int64
	owner *Corpus
}

// Len is the number of documents.
func (w *Window) Len() int { return len(w.Failure) }

func (w *Window) reset(c *Corpus) {
	if w.owner != c {
		w.Columns, w.owner, w.Chunk = column.NewSet(c.fields), c, nil
		if c.wanted.chunked {
			w.Chunk = []int32{}
		}
	}
	w.Index, w.Rows, w.bytes = 0, 0, 0
	w.Text.Reset()
	w.TextBytes, w.Failure = w.TextBytes[:0], w.Failure[:0]
	w.File, w.Row, w.Chunk = w.File[:0], w.Row[:0], w.Chunk[:0]
	w.Columns.Reset()
}

func (w *Window) full(docs int) bool { return docs > 0 && w.Len() >= docs }

// add copies the reader's current document, unless the window's bytes would
// pass the limit.
func (w *Window) add(r *reader, limit int64) bool {
	size := int64(len(r.text)) + r.columns.Bytes()
	if limit > 0 && w.Len() > 0 && w.bytes+size > limit {
		return false
	}
	w.bytes += size
	w.Text.Append(r.text)
	w.TextBytes = append(w.TextBytes, r.textBytes)
	w.Failure = append(w.Failure, r.failure)
	w.File = append(w.File, int32(r.file))
	w.Row = append(w.Row, r.row)
	if w.Chunk != nil {
		w.Chunk = append(w.Chunk, r.chunk)
	}
	if r.chunk <= 0 {
		w.Rows++
	}
	w.Columns.AppendFrom(r.columns, 0)
	return true
}

// judge decides whether a text can be embedded. UTF-8 comes first: a byte that
// is none is never taken for a blank.
func judge(text []byte) Failure {
	switch {
	case !utf8.Valid(text):
		return InvalidUTF8
	case blank(text):
		return EmptyText
	case len(text) > MaxText:
		return TooBig
	default:
		return None
	}
}

// blank reports whether nothing of a text is visible: only white space and the
// zero-width characters that models drop too.
func blank(text []byte) bool {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch r {
		case 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF:
		default:
			if !unicode.Is(unicode.White_Space, r) {
				return false
			}
		}
		text = text[n:]
	}
	return true
}
