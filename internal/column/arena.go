// Package column holds values of many rows as flat memory: a few large slices
// with offsets instead of a slice or a string per document, so that a window of
// hundreds of thousands of documents costs the garbage collector nothing.
//
// Arena holds texts. Set holds the id column and the kept columns, in whatever
// Parquet type they have, from the corpus's pages to the shard's.
package column

// Arena is a list of byte strings in one slice. Value i is
// Data[Ends[i-1]:Ends[i]], and Ends[-1] counts as 0.
type Arena struct {
	Data []byte
	Ends []int64

	reserved []byte // of Reserve, nil for an ordinary arena
}

// Len is the number of values.
func (a *Arena) Len() int { return len(a.Ends) }

// At is value i. It aliases the arena.
func (a *Arena) At(i int) []byte {
	start := int64(0)
	if i > 0 {
		start = a.Ends[i-1]
	}
	return a.Data[start:a.Ends[i]:a.Ends[i]]
}

// Append copies v to the end.
func (a *Arena) Append(v []byte) {
	a.Data = append(a.Data, v...)
	a.Ends = append(a.Ends, int64(len(a.Data)))
}

// Reset empties the arena and keeps its memory.
func (a *Arena) Reset() {
	a.Data = a.Data[:0]
	a.Ends = a.Ends[:0]
}
