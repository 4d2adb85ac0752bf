package corpus

import (
	"context"
	"io"
	"slices"

	"localembed/internal/corpus/pages"
	"localembed/internal/fault"
)

// Ref names one document.
type Ref struct {
	File  int32 // place in Corpus.Files
	Row   int64
	Chunk int32 // 0 or NoChunk unless the corpus is chunked
}

// Texts reads single texts back, in the order of docs; nil for a null text and
// for a place that a list does not have, and the first KeptText bytes of a text
// over MaxText. Row groups and pages without a wanted row are not read. It may
// be called while another goroutine calls Next.
func (c *Corpus) Texts(ctx context.Context, docs []Ref) ([][]byte, error) {
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := docs[a], docs[b]
		switch {
		case x.File != y.File:
			return int(x.File - y.File)
		case x.Row < y.Row:
			return -1
		case x.Row > y.Row:
			return 1
		default:
			return int(x.Chunk - y.Chunk)
		}
	})
	texts := make([][]byte, len(docs))
	for len(order) > 0 {
		n := 1
		for n < len(order) && docs[order[n]].File == docs[order[0]].File {
			n++
		}
		if err := c.textsOf(ctx, docs, order[:n], texts); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return texts, nil
}

// textsOf reads the texts of one file; order is by row.
func (c *Corpus) textsOf(ctx context.Context, docs []Ref, order []int, texts [][]byte) error {
	f := &c.files[docs[order[0]].File]
	o, err := c.reopen(f)
	if err != nil {
		return err
	}
	defer o.file.Close()
	s, err := c.locate(o)
	if err != nil {
		return fault.Of(err).In(f.Path)
	}
	first := int64(0) // row of the row group
	for g, group := range o.pq.Metadata().RowGroups {
		n := 0
		for n < len(order) && docs[order[n]].Row < first+group.NumRows {
			n++
		}
		if n > 0 {
			if ctx.Err() != nil {
				return fault.Of(context.Cause(ctx))
			}
			seeker := seeker{text: s.text, row: first}
			err := seeker.col.Open(o.file, o.size, o.chunk(s.text.leaf, g))
			for _, i := range order[:n] {
				if err == nil {
					texts[i], err = seeker.read(docs[i])
				}
			}
			if err != nil {
				return fault.Of(err).In(f.Path).AtRowGroup(g)
			}
			order = order[n:]
		}
		first += group.NumRows
	}
	if len(order) > 0 {
		return fault.New(fault.Internal, "row %d is asked for, but the file has %d", docs[order[0]].Row, first).In(f.Path)
	}
	return nil
}

// seeker reads texts of one row group in ascending order.
type seeker struct {
	text textLeaf
	col  pages.Column
	row  int64 // that the column's next entry belongs to, unless in is set

	in    bool // the column stands on an element of row
	chunk int32
	last  []byte // text of the document read last
	ref   Ref
	any   bool
}

func (s *seeker) read(want Ref) ([]byte, error) {
	want.Chunk = max(want.Chunk, 0)
	if s.any && s.ref == want {
		return s.last, nil
	}
	if !s.any || s.ref.Row != want.Row {
		if err := s.seek(want.Row); err != nil {
			if err == io.EOF {
				err = fault.New(fault.CorruptFile, "a column ends before its row group").Hinting(hintDamaged)
			}
			return nil, err
		}
	}
	s.any, s.ref, s.last = true, want, nil
	for s.in && s.chunk < want.Chunk {
		switch err := s.col.Next(); {
		case err == io.EOF:
			s.in = false
		case err != nil:
			return nil, err
		case s.col.Rep == 0:
			s.col.Hold()
			s.in = false
		default:
			s.chunk++
		}
	}
	if !s.in || s.col.Def < s.text.max || isNull(s.text.leaf) {
		return nil, nil
	}
	text, err := s.col.Value()
	if err != nil {
		return nil, err
	}
	if len(text) > MaxText {
		text = text[:KeptText]
	}
	s.last = append([]byte{}, text...)
	return s.last, nil
}

// seek moves to the first element of a row.
func (s *seeker) seek(row int64) error {
	if s.in && s.text.list {
		// The rest of the list is read past, to stand where a row ends.
		for {
			err := s.col.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if s.col.Rep == 0 {
				s.col.Hold()
				break
			}
		}
	}
	if err := s.col.Skip(row - s.row); err != nil {
		return err
	}
	if err := s.col.Next(); err != nil {
		return err
	}
	s.row, s.in, s.chunk = row+1, true, 0
	return nil
}
