package main

import (
	"fmt"
	"iter"
	"strings"
)

// derive makes the rows of the corpus that -texts and -long ask for.
func derive(docs []document, texts, long int) (iter.Seq[document], error) {
	rows := each(docs)
	if texts > 0 {
		distinct := withoutDuplicates(docs)
		if most := len(distinct) * len(distinct); texts > most {
			return nil, fmt.Errorf("-texts %d is more than the %d distinct texts that can be made: ask for fewer", texts, most)
		}
		rows = first(texts, pairs(distinct))
	}
	if long > 0 {
		rows = withLong(rows, docs, long)
	}
	return rows, nil
}

// each yields the documents as they are.
func each(docs []document) iter.Seq[document] {
	return func(yield func(document) bool) {
		for _, d := range docs {
			if !yield(d) {
				return
			}
		}
	}
}

// withoutDuplicates keeps the first document of every text.
func withoutDuplicates(docs []document) []document {
	seen := make(map[string]bool, len(docs))
	var distinct []document
	for _, d := range docs {
		if !seen[d.Text] {
			seen[d.Text] = true
			distinct = append(distinct, d)
		}
	}
	return distinct
}

// pairs yields first the documents alone, then each with the next one, then
// each with the one after that, and so on, len(docs)² in all. The sum of two
// natural lengths is a natural length, and every round has all lengths, so
// each window of a large corpus looks like the others. The second document is
// joined by its id: with distinct docs, no two pairs have the same text.
func pairs(docs []document) iter.Seq[document] {
	return func(yield func(document) bool) {
		for distance := range len(docs) {
			for i, d := range docs {
				if distance > 0 {
					other := docs[(i+distance)%len(docs)]
					d.ID += "+" + other.ID
					d.Text += "\n\nSee also " + other.ID + ": " + other.Text
				}
				if !yield(d) {
					return
				}
			}
		}
	}
}

// first yields the first n of rows.
func first(n int, rows iter.Seq[document]) iter.Seq[document] {
	return func(yield func(document) bool) {
		left := n
		for d := range rows {
			if left == 0 || !yield(d) {
				return
			}
			left--
		}
	}
}

// longEvery is how many texts stand before each long one: every 1 024th row is long, so
// that a larger corpus has more of them but no window has.
const longEvery = 1023

// withLong yields rows with a text of size bytes after every longEvery of
// them: the comments one after the other, each time from the next one on. The
// cut at size drops a letter that it would split.
func withLong(rows iter.Seq[document], docs []document, size int) iter.Seq[document] {
	return func(yield func(document) bool) {
		n := 0
		for d := range rows {
			if !yield(d) {
				return
			}
			if n++; n%longEvery != 0 {
				continue
			}
			k := n / longEvery
			if !yield(document{ID: fmt.Sprintf("long+%d", k), Text: runOn(docs, k, size)}) {
				return
			}
		}
	}
}

func runOn(docs []document, from, size int) string {
	var b strings.Builder
	for i := from; b.Len() < size; i++ {
		b.WriteString(docs[i%len(docs)].Text)
		b.WriteString("\n\n")
	}
	return strings.ToValidUTF8(b.String()[:size], "")
}
