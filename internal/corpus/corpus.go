// Package corpus reads a text corpus from Parquet files: it finds the files,
// checks all their schemas before any work, and gives out windows of documents
// with their ids and kept columns.
//
// Guarantees:
//   - The order of documents is the corpus order: arguments as given, inside a
//     folder or glob bytewise by relative path, rows as in the file, elements
//     as in the list. Windows are a pure function of files and options.
//   - Every row of every file is given out, or the error names the file: rows
//     are counted against the footer, pages against their checksums. With SkipBad
//     a file that has such an error is left out whole, as if it were not there.
//   - Text, id and kept columns have one type in all files. A 32-bit integer
//     widens to 64 bits where another file has 64, a Null column fits any type.
//   - Memory is a window and a page of each column. No row group or file is
//     ever held, whatever its size.
//
// Reading goes through parquet-go for footers and schemas, and through the
// package pages for values.
package corpus

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"localembed/internal/column"
	"localembed/internal/fault"
)

// DefaultText is the text column where none is named.
const DefaultText = "text"

// defaultID is the id column where none is named and there is one.
const defaultID = "id"

// reserved are the output's own column names.
var reserved = []string{"file", "row", "chunk", "content_hash", "n_tokens", "truncated", "embedding"}

// Options say what to read.
type Options struct {
	Args []string // files, folders and globs, in corpus order
	Text string   // text column, DefaultText if empty; dots lead into structs
	ID   string   // id column, a column named id if empty and there is one
	Keep []string // further columns to give out
	// Limit is the number of corpus rows to read, 0 for all.
	Limit int64
	// OutDir is left out of the listing, "" for none.
	OutDir string
	// A window closes at WindowDocs documents or before its bytes (texts, ids
	// and kept columns) pass WindowBytes; 0 means no such limit.
	WindowDocs  int
	WindowBytes int64
	// SkipBad leaves damaged and foreign files out instead of stopping at them.
	SkipBad bool
}

// File is one file of the corpus.
type File struct {
	Path         string // as it is opened
	Name         string // value of the output's file column, unique in the corpus
	Arg          int    // the argument it comes from, from 0
	Rel          string // path relative to its argument, with slashes
	Size         int64
	ModTime      time.Time
	FooterSHA256 [sha256.Size]byte
	Rows         int64

	place int // among the listed files, left out or not
}

// Corpus is an open corpus. It belongs to one goroutine, but for Texts and Rows.
type Corpus struct {
	opts   Options
	wanted wanted
	files  []File
	rows   atomic.Int64 // of files that are not left out
	skips  []Skipped
	fields []column.Field
	nodes  []*node

	reader reader
	window int // index of the next window
}

// wanted are the names of the columns to read.
type wanted struct {
	text    string
	id      string // "" for none
	keep    []string
	chunked bool
}

// Open lists the files of the corpus, reads all footers and checks all schemas.
// With SkipBad, the files whose footers are bad are left out of Files.
// Errors have the classes usage, no_such_file, no_such_column, wrong_type,
// not_parquet, truncated_file, corrupt_file, encrypted_file, unsupported_file
// and io_error; of several it is the first in corpus order.
func Open(ctx context.Context, opts Options) (*Corpus, error) {
	if len(opts.Args) == 0 {
		return nil, fault.New(fault.Usage, "no corpus is named").
			Hinting("name Parquet files, folders or globs")
	}
	if opts.Text == "" {
		opts.Text = DefaultText
	}
	c := &Corpus{opts: opts, wanted: wanted{text: opts.Text, id: opts.ID, keep: opts.Keep}}
	if err := c.wanted.checkNames(); err != nil {
		return nil, err
	}
	var err error
	if c.files, err = list(opts.Args, opts.OutDir); err != nil {
		return nil, err
	}
	if err := c.readFooters(ctx); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		c.fields = append(c.fields, column.Field{Name: n.name, Node: n})
	}
	c.reader.start(c)
	return c, nil
}

// checkNames refuses names that would stand twice in the output.
func (w *wanted) checkNames() error {
	taken := slices.Clone(reserved)
	if w.id != "" {
		if slices.Contains(taken, w.id) {
			return fault.New(fault.Usage, "the id column %q has the name of an output column", w.id).
				Hinting("rename it in the corpus, or leave --id away: rows are known by file and row number")
		}
		taken = append(taken, w.id)
	}
	for _, k := range w.keep {
		if slices.Contains(taken, k) {
			return fault.New(fault.Usage, "the kept column %q would stand twice in the output", k).
				Hinting("take it out of --keep, or rename it in the corpus")
		}
		taken = append(taken, k)
	}
	return nil
}

// footersAtOnce is how many footers are read at a time: enough to hide the
// latency of a disk, few enough that their memory does not count.
const footersAtOnce = 8

// readFooters reads all footers, fills in the files, leaves out bad ones if it may
// and unifies the columns' types.
func (c *Corpus) readFooters(ctx context.Context) error {
	var u unifier
	listed := c.files
	c.files = nil
	for start := 0; start < len(listed); start += footersAtOnce {
		files := listed[start:min(start+footersAtOnce, len(listed))]
		results := make([]*opened, len(files))
		errs := make([]error, len(files))
		var g sync.WaitGroup
		for i := range files {
			g.Go(func() {
				if errs[i] = context.Cause(ctx); errs[i] == nil {
					results[i], errs[i] = openFile(files[i].Path)
				}
			})
		}
		g.Wait()
		var first error
		for i, o := range results {
			err := errs[i]
			if o != nil && first == nil {
				err = c.addFile(&u, &files[i], o)
			}
			if o != nil {
				o.file.Close()
			}
			files[i].place = start + i
			if err != nil && c.skip(files[i], err) {
				continue
			}
			if first == nil {
				first = err
			}
			c.files = append(c.files, files[i])
			c.rows.Add(files[i].Rows)
		}
		if first != nil {
			return fault.Of(first)
		}
	}
	if len(c.files) == 0 {
		return c.nothingLeft()
	}
	c.nodes = u.nodes
	c.wanted.chunked = u.chunked == yes
	return nil
}

func (c *Corpus) addFile(u *unifier, f *File, o *opened) error {
	f.Size, f.ModTime, f.FooterSHA256, f.Rows = o.size, o.modTime, o.digest, o.pq.NumRows()
	wanted := c.wanted
	if u.files == 0 && wanted.id == "" {
		if err := wanted.implicitID(o); err != nil {
			return fault.Of(err).In(f.Path)
		}
	}
	found, err := wanted.locate(o)
	if err != nil {
		return fault.Of(err).In(f.Path)
	}
	c.wanted = wanted // a file that is left out does not decide what the id is
	return u.add(f.Path, &c.wanted, found)
}

// implicitID takes a column named id as the id column if the first file has one.
func (w *wanted) implicitID(o *opened) error {
	if o.pq.Root().Column(defaultID) == nil {
		return nil
	}
	if slices.Contains(w.keep, defaultID) {
		return fault.New(fault.Usage, "the kept column %q is the id column and stands in the output anyway", defaultID).
			Hinting("take it out of --keep")
	}
	w.id = defaultID
	return nil
}

// Files are the files in corpus order.
func (c *Corpus) Files() []File { return c.files }

// Rows is the number of corpus rows that will be read. It shrinks when a file is
// left out that was thought to be good.
func (c *Corpus) Rows() int64 {
	rows := c.rows.Load()
	if c.opts.Limit > 0 {
		rows = min(rows, c.opts.Limit)
	}
	return rows
}

// HasID reports whether the first column is the id.
func (c *Corpus) HasID() bool { return c.wanted.id != "" }

// Chunked reports whether the text column is a list: one document per element.
func (c *Corpus) Chunked() bool { return c.wanted.chunked }

// Columns are the id, if there is one, and the kept columns in the order they
// were named, with the type that holds all files' values.
func (c *Corpus) Columns() []column.Field { return c.fields }

// Close closes the file that is being read.
func (c *Corpus) Close() error { return c.reader.close() }

// Next fills w with the next window; io.EOF after the last one. What w held is
// lost, its memory is used again. After an error every call returns that error.
func (c *Corpus) Next(ctx context.Context, w *Window) error {
	w.reset(c)
	if c.reader.err != nil {
		return c.reader.err
	}
	for !w.full(c.opts.WindowDocs) {
		if w.Len()%1024 == 0 && ctx.Err() != nil {
			c.reader.err = fault.Of(context.Cause(ctx)) // what w holds is given up
			return c.reader.err
		}
		err := c.reader.peek(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !w.add(&c.reader, c.opts.WindowBytes) {
			break
		}
		c.reader.taken = true
	}
	if w.Len() == 0 {
		return io.EOF
	}
	w.Index = c.window
	c.window++
	return nil
}
