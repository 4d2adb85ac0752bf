package corpus

import (
	"context"
	"errors"
	"io"
	"slices"

	"localembed/internal/fault"
)

// Skipped is a file that was left out because of SkipBad, none of whose rows are in any
// window.
type Skipped struct {
	File File
	Err  *fault.Error // class, place and sentence
}

// Skipped are the files left out so far, in corpus order. Those with bad footers are
// known from the start, a damaged page shows when its file's turn comes.
func (c *Corpus) Skipped() []Skipped { return c.skips }

// skippable are the classes of files that are damaged or foreign. A file that cannot
// be opened, or whose schema is another one, is neither: the run stops at it. Internal
// is a panic while a file was decoded.
var skippable = []fault.Class{
	fault.NotParquet, fault.TruncatedFile, fault.CorruptFile, fault.EncryptedFile, fault.UnsupportedFile, fault.Internal,
}

// skip leaves a file out if that is wanted and the error is one of the file.
func (c *Corpus) skip(f File, err error) bool {
	e := fault.Of(err)
	if !c.opts.SkipBad || !slices.Contains(skippable, e.Class) {
		return false
	}
	c.skips = append(c.skips, Skipped{File: f, Err: e})
	slices.SortStableFunc(c.skips, func(a, b Skipped) int { return a.File.place - b.File.place })
	return true
}

// nothingLeft is the error of a corpus whose every file is left out.
func (c *Corpus) nothingLeft() error {
	first := c.skips[0].Err
	return fault.New(first.Class, "no file of the corpus can be read (%d are left out); this is the first: %s", len(c.skips), first.Message).
		In(first.File).Because(first.Err).Hinting("%s", first.Hint)
}

// sound reads the file at r.file through, before any of its rows enters a window, and
// leaves it out if it is damaged, also where no limit would reach. Damage in a page can show behind rows that were read
// wrongly because of it, so rows in front of it are not relied on; and what a file gives
// stays a function of its bytes alone, so that a later run leaves out the same without
// having to remember it, and so does one with a higher limit.
func (r *reader) sound(ctx context.Context) (bool, error) {
	s := reader{c: r.c, end: r.file + 1, file: r.file - 1, taken: true, texts: r.texts, leaves: r.leaves, columns: r.columns}
	err := s.through(ctx)
	_ = s.close()
	r.texts, r.leaves = s.texts, s.leaves // their buffers
	f := r.c.files[r.file]
	switch {
	case err == nil:
		return true, nil
	case r.c.skip(f, err):
		r.c.rows.Add(-f.Rows)
		return false, nil
	default:
		return false, err
	}
}

// through reads every document up to the reader's end.
func (r *reader) through(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return fault.Of(context.Cause(ctx))
		}
		switch err := r.peek(ctx); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r.taken = true
	}
}
