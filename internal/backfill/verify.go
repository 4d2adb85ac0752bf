package backfill

import (
	"context"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/checkpoint"
	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/shard"
)

// Verified says what Verify looked at.
type Verified struct {
	Documents        int64 `json:"documents_in"`
	RowsEmbedded     int64 `json:"rows_embedded"`
	RowsDeadLettered int64 `json:"rows_dead_lettered"`
	Shards           int64 `json:"shards"`
	StoreVectors     int64 `json:"store_vectors"` // 0 where there is no store
	Findings         int64 `json:"findings"`
}

// verifier reads a corpus beside the shards that were made of it.
type verifier struct {
	Verified
	fs     vfs.FS
	out    string
	job    *Job
	corpus *corpus.Corpus
	layout *shard.Layout
	names  []string
	place  map[string]int32 // of a file name in the corpus
	tell   func(*fault.Error)
}

// Verify compares OUT with the corpus, row by row: every document stands in its window's
// shard or in its dead letters, in corpus order, with its own content hash, ids and kept
// values; vectors are finite and, where the recipe normalizes, of length 1; checksums,
// counts and footers agree. It reads every vector of the store too, if there is one. Each
// thing that is wrong goes to tell; an error means that not all could be looked at. It
// holds one window, writes nothing and needs no model.
func Verify(ctx context.Context, fs vfs.FS, out, store string, job *Job, c *corpus.Corpus, tell func(*fault.Error)) (*Verified, error) {
	v := &verifier{fs: fs, out: out, job: job, corpus: c, place: map[string]int32{}}
	v.tell = func(e *fault.Error) { v.Findings++; tell(e) }
	var err error
	if v.layout, err = shard.NewLayout(c.Columns(), c.HasID(), c.Chunked(), shard.Meta{Recipe: job.Recipe}); err != nil {
		return nil, err
	}
	for i, f := range c.Files() {
		v.names = append(v.names, f.Name)
		v.place[f.Name] = int32(i)
	}
	if err := v.store(store); err != nil {
		return &v.Verified, err
	}
	return &v.Verified, v.shards(ctx)
}

func (v *verifier) store(dir string) error {
	s, err := checkpoint.Open(StoreDir(v.out, dir), checkpoint.Options{ReadOnly: true})
	if errors.Is(err, checkpoint.ErrNotExist) {
		return nil
	}
	if fault.Is(err, fault.StoreCorrupt) {
		v.tell(fault.Of(err))
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	v.StoreVectors, err = s.Verify(func(path, why string) error {
		v.tell(fault.New(fault.StoreCorrupt, "%s", why).In(path).
			Hinting("run makes it again when it needs it: nothing has to be done where the shards are right"))
		return nil
	})
	return err
}

func (v *verifier) shards(ctx context.Context) error {
	w := &window{}
	windows := 0
	for {
		err := w.fill(ctx, v.corpus, v.job.Recipe)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = v.window(w)
		}
		if err != nil {
			return err
		}
		windows++
	}
	for _, dir := range []string{v.out, v.fs.PathJoin(v.out, shard.FailuresDir)} {
		parts, err := shard.List(v.fs, dir)
		if err != nil {
			return outError(v.out, err)
		}
		for _, p := range parts {
			if p.Index >= max(1, windows) {
				v.tell(fault.New(fault.CorruptFile, "the corpus has %d windows, and this part is behind the last one", windows).In(p.Path).
					Hinting("run the same command again: surplus parts are deleted"))
			}
		}
	}
	return nil
}

// window compares one window with its two files.
func (v *verifier) window(w *window) error {
	v.Documents += int64(w.Len())
	letters, err := v.letters(w)
	if err != nil {
		return err
	}
	rows := shard.Rows{Docs: w.embedded(), FileNames: v.names, File: w.File, Row: w.Row, Chunk: w.Chunk, Columns: w.Columns, Keys: w.keys}
	path := shard.Path(v.fs, v.out, w.Index)
	info, err := shard.Footer(v.fs, path)
	if err != nil {
		return outError(v.out, err)
	}
	if info.State == shard.Good {
		want := v.layout.Digest(w.digest, w.dead(), w.Columns)
		again := "run the same command again: what changed is embedded, and the shard is written again"
		if info.Digest != want {
			v.tell(fault.New(fault.CorruptFile, "it was not made of these documents: its shard digest is another one").In(path).Hinting("%s", again))
		}
		if letters != nil && *letters != info.Digest {
			v.tell(fault.New(fault.CorruptFile, "these dead letters belong to another shard").In(shard.FailuresPath(v.fs, v.out, w.Index)).Hinting("%s", again))
		}
		if info.Meta.Recipe.Digest() != v.job.Recipe.Digest() {
			v.tell(fault.New(fault.CorruptFile, "its vectors are of another recipe than the job's").In(path).Hinting("%s", again))
			return nil
		}
	}
	err = v.layout.Check(v.fs, path, rows, func(err error) error { v.tell(fault.Of(err)); return nil })
	if e := fault.Of(err); e != nil && info.State != shard.Good {
		v.tell(e)
		return nil
	}
	if err != nil {
		return outError(v.out, err)
	}
	v.Shards++
	v.RowsEmbedded += info.Rows
	return nil
}

// letters matches a window's dead letters with its documents, gives these their class, and
// returns the shard digest that the file names; nil where there is none.
func (v *verifier) letters(w *window) (*[32]byte, error) {
	path := shard.FailuresPath(v.fs, v.out, w.Index)
	info, err := shard.Footer(v.fs, path)
	if err != nil {
		return nil, outError(v.out, err)
	}
	dead := w.dead()
	if info.State == shard.Missing {
		if len(dead) > 0 {
			v.tell(fault.New(fault.CorruptFile, "%d texts of this window cannot be embedded, and there are no dead letters", len(dead)).In(path).
				Hinting("run the same command again: they are written again"))
		}
		return nil, nil
	}
	letters, digest, err := shard.ReadFailures(v.fs, path)
	if fault.Is(err, fault.CorruptFile) || fault.Is(err, fault.UnsupportedFile) {
		v.tell(fault.Of(err))
		return nil, nil
	}
	if err != nil {
		return nil, outError(v.out, err)
	}
	v.RowsDeadLettered += int64(len(letters))
	bad := func(row int, format string, args ...any) {
		v.tell(fault.New(fault.CorruptFile, format, args...).In(path).AtRow(int64(row)).
			Hinting("delete it and run the same command again: it is written again"))
	}
	doc, told := 0, false
	for i, l := range letters {
		for doc < w.Len() && !v.is(w, doc, l) {
			if w.class[doc] != "" && !told {
				told = true
				bad(i, "the document at %s, row %d, cannot be embedded (%s) and has no dead letter", v.names[w.File[doc]], w.Row[doc], w.class[doc])
			}
			doc++
		}
		if doc == w.Len() {
			bad(i, "the dead letter of %q, row %d, is of no document of this window, or stands out of order", l.File, l.Row)
			return &digest, nil
		}
		if c := w.class[doc]; c != "" && c != l.Class {
			bad(i, "the class is %q, and the text is %s", l.Class, c)
		}
		w.class[doc] = l.Class
		doc++
	}
	for ; doc < w.Len(); doc++ {
		if w.class[doc] != "" {
			bad(len(letters), "the document at %s, row %d, cannot be embedded (%s) and has no dead letter", v.names[w.File[doc]], w.Row[doc], w.class[doc])
			break
		}
	}
	return &digest, nil
}

// is reports whether a dead letter is of a document.
func (v *verifier) is(w *window, doc int, l shard.Letter) bool {
	file, ok := v.place[l.File]
	return ok && file == w.File[doc] && l.Row == w.Row[doc] && (w.Chunk == nil || l.Chunk == w.Chunk[doc])
}
