package corpus

import (
	"context"
	"io"

	"localembed/internal/column"
	"localembed/internal/corpus/pages"
	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
)

// reader walks the documents of the corpus, one at a time. Its pages' memory
// serves all files.
type reader struct {
	c     *Corpus
	end   int   // place of the file behind the last one
	limit int64 // of corpus rows, 0 for none
	check bool  // files are read through before their first document is given out

	file   int // place in the corpus; -1 before the first
	open   *opened
	source source
	group  int
	left   int64 // rows left in the row group
	rows   int64 // corpus rows begun
	inList bool  // the current row may have more elements

	texts  pages.Column
	leaves []*pages.Column // one per mapped leaf

	// The current document. text lies in a page and is valid until the next.
	taken     bool  // it was given out
	err       error // why there is none, for good
	text      []byte
	textBytes int64
	failure   Failure
	row       int64
	chunk     int32
	columns   *column.Set // one row: the id and the kept values
}

func (r *reader) start(c *Corpus) {
	*r = reader{c: c, end: len(c.files), limit: c.opts.Limit, check: c.opts.SkipBad, file: -1, taken: true, columns: column.NewSet(c.fields)}
}

func (r *reader) close() error {
	if r.open == nil {
		return nil
	}
	err := r.open.file.Close()
	r.open = nil
	return err
}

// peek makes sure that there is a current document that was not given out; io.EOF at the end.
func (r *reader) peek(ctx context.Context) (err error) {
	if !r.taken {
		return nil
	}
	if r.err != nil {
		return r.err
	}
	defer func() {
		if p := recover(); p != nil {
			err = r.fail(fault.New(fault.Internal, "reading the file went wrong: %v", p).
				Hinting("this is a defect of localembed: please report it with the file; leave the file out to go on"))
		}
		r.err = err
	}()
	switch err := r.advance(ctx); {
	case err == io.EOF:
		return io.EOF
	case err != nil:
		return r.fail(err)
	}
	r.taken = false
	return nil
}

// fail names the file and the row group.
func (r *reader) fail(err error) error {
	e := fault.Of(err)
	if e.Class == fault.Interrupted {
		return err // not the file's doing
	}
	if r.file >= 0 && r.file < len(r.c.files) && e.File == "" {
		e.In(r.c.files[r.file].Path)
	}
	if r.open != nil && e.Class != fault.IOError {
		e.AtRowGroup(r.group)
	}
	if e.Hint == "" {
		e.Hinting(hintDamaged)
	}
	return e
}

// advance moves to the next document.
func (r *reader) advance(ctx context.Context) error {
	if r.inList {
		switch err := r.texts.Next(); {
		case err != nil && err != io.EOF:
			return err
		case err == nil && r.texts.Rep > 0:
			r.chunk++
			return r.take()
		case err == nil:
			r.texts.Hold()
		}
		r.inList = false
	}
	if r.limit > 0 && r.rows == r.limit {
		return io.EOF
	}
	for r.left == 0 {
		if err := r.nextGroup(ctx); err != nil {
			return err
		}
	}
	r.left--
	r.rows++
	r.row++
	r.chunk = 0
	if r.c.wanted.chunked && !r.source.text.list {
		r.chunk = NoChunk
	}
	if err := r.readColumns(); err != nil {
		return err
	}
	if err := r.texts.Next(); err != nil {
		return r.early(err)
	}
	r.inList = r.source.text.list
	return r.take()
}

// take makes the texts' current entry the current document.
func (r *reader) take() error {
	t := &r.source.text
	r.text, r.textBytes = nil, 0
	switch {
	case r.texts.Def == t.max && isNull(t.leaf):
		return valuesOfNothing(t.leaf)
	case r.texts.Def == t.max:
		text, err := r.texts.Value()
		if err != nil {
			return err
		}
		r.text, r.textBytes, r.failure = text, int64(len(text)), judge(text)
		if r.failure != None {
			r.text = text[:min(len(text), KeptText)]
		}
	case t.list && r.texts.Def == t.empty:
		r.failure = EmptyText
	default:
		r.failure = NullText
	}
	if t.list && r.texts.Def <= t.empty {
		r.chunk = NoChunk
	}
	return nil
}

// readColumns reads the id and the kept values of the row that begins.
func (r *reader) readColumns() error {
	r.columns.Reset()
	for i, m := range r.source.leaves {
		p := r.leaves[i]
		if err := p.Next(); err != nil {
			return r.early(err)
		}
		for {
			if err := m.copy(r.columns, p); err != nil {
				return err
			}
			if m.leaf.MaxRepetitionLevel() == 0 {
				break
			}
			err := p.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if p.Rep == 0 {
				p.Hold()
				break
			}
		}
	}
	for _, h := range r.source.hive {
		if h.value == nil {
			r.columns.Leaves[h.target].AppendEntry(0, nil, true, 0, 0)
		} else {
			r.columns.Leaves[h.target].AppendEntry(parquet.ByteArray, []byte(*h.value), false, 1, 0)
		}
	}
	return nil
}

// early turns the end of a column within a row group into an error.
func (r *reader) early(err error) error {
	if err == io.EOF {
		return fault.New(fault.CorruptFile, "a column ends %d rows before its row group", r.left+1).Hinting(hintDamaged)
	}
	return err
}

// nextGroup opens the next row group, in the next file if need be; io.EOF at the end.
func (r *reader) nextGroup(ctx context.Context) error {
	if r.open != nil {
		if err := r.finishGroup(); err != nil {
			return err
		}
		r.group++
	}
	for r.open == nil || r.group == len(r.open.pq.Metadata().RowGroups) {
		if err := r.close(); err != nil {
			return err
		}
		r.file++
		if r.file == r.end {
			return io.EOF
		}
		if r.check {
			if good, err := r.sound(ctx); err != nil {
				return err
			} else if !good {
				continue
			}
		}
		if err := r.openFile(); err != nil {
			return err
		}
	}
	r.left = r.open.pq.Metadata().RowGroups[r.group].NumRows
	if r.left == 0 {
		return nil
	}
	if err := r.texts.Open(r.open.file, r.open.size, r.open.chunk(r.source.text.leaf, r.group)); err != nil {
		return err
	}
	for i, m := range r.source.leaves {
		if err := r.leaves[i].Open(r.open.file, r.open.size, r.open.chunk(m.leaf, r.group)); err != nil {
			return err
		}
	}
	return nil
}

// finishGroup makes sure that no column has values behind the last row.
func (r *reader) finishGroup() error {
	if r.group < 0 || r.open.pq.Metadata().RowGroups[r.group].NumRows == 0 {
		return nil
	}
	for _, p := range append([]*pages.Column{&r.texts}, r.leaves[:len(r.source.leaves)]...) {
		if err := p.Next(); err == nil {
			return fault.New(fault.CorruptFile, "a column has more rows than its row group").Hinting(hintDamaged)
		} else if err != io.EOF {
			return err
		}
	}
	return nil
}

// openFile opens the file at r.file and finds the columns in it.
func (r *reader) openFile() error {
	f := &r.c.files[r.file]
	o, err := r.c.reopen(f)
	if err != nil {
		return err
	}
	r.open, r.group, r.row = o, 0, -1
	if r.source, err = r.c.locate(o); err != nil {
		return err
	}
	for len(r.leaves) < len(r.source.leaves) {
		r.leaves = append(r.leaves, new(pages.Column))
	}
	return nil
}

// reopen opens a file again and makes sure that it is the one that was checked.
func (c *Corpus) reopen(f *File) (*opened, error) {
	o, err := openFile(f.Path)
	if err != nil {
		return nil, err
	}
	if o.size != f.Size || o.digest != f.FooterSHA256 {
		o.file.Close()
		return nil, fault.New(fault.IOError, "the file was changed while it was being read").In(f.Path).
			Hinting("run the same command again once nothing writes to the corpus")
	}
	return o, nil
}
