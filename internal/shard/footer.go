package shard

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// State is what a look at a file's footer finds.
type State int

// The states of a file; only Good has a whole Info.
const (
	Good         State = iota // ours, whole as far as the footer tells
	Missing                   // there is no such file
	Foreign                   // a Parquet file that localembed did not make
	Damaged                   // not a Parquet file, or one with a broken footer
	OtherVersion              // ours, of another format version
)

func (s State) String() string {
	return [...]string{"good", "missing", "foreign", "damaged", "another format version"}[s]
}

// maxDim is far above any model's; it bounds what a damaged footer can ask for.
const maxDim = 1 << 20

// Info is what a footer says.
type Info struct {
	State  State
	Why    string // what is wrong, in words; "" when good
	Bytes  int64  // file size
	Rows   int64
	Dim    int
	Digest [32]byte // shard digest; of dead letters that of their shard
	// Truncated is how many rows have a text that was cut; 0 for dead letters.
	Truncated int64
	Meta      Meta
}

// Footer reads a shard's footer, or a dead letters file's: two small reads. An
// error means that the file could not be looked at; what is wrong with the file
// is a State.
func Footer(fsys vfs.FS, path string) (Info, error) {
	r, info, err := open(fsys, path)
	if r != nil {
		_ = r.file.Close()
	}
	return info, err
}

// open opens a file and looks at its footer. The reader is nil unless the state
// is Good.
func open(fsys vfs.FS, path string) (*Reader, Info, error) {
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Info{State: Missing, Why: "there is no such file"}, nil
	}
	if err != nil {
		return nil, Info{}, err
	}
	r := &Reader{path: path, file: f}
	info, err := r.open()
	if err != nil || info.State != Good {
		_ = f.Close()
		return nil, info, err
	}
	r.Info = info
	return r, info, nil
}

func (r *Reader) open() (info Info, err error) {
	stat, err := r.file.Stat()
	if err != nil {
		return Info{}, err
	}
	size := stat.Size()
	damaged := func(format string, args ...any) (Info, error) {
		return Info{State: Damaged, Bytes: size, Why: fmt.Sprintf(format, args...)}, nil
	}
	// The length is checked before the library allocates it.
	if size < 12 {
		return damaged("%d bytes are too few for a Parquet file", size)
	}
	var end [8]byte
	if _, err := r.file.ReadAt(end[:], size-8); err != nil {
		return Info{}, err
	}
	if string(end[4:]) != "PAR1" {
		return damaged("the file does not end as a Parquet file does")
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-12 {
		return damaged("a footer of %d bytes does not fit a file of %d", n, size)
	}
	in := &input{r: r.file}
	err = guard(func() (err error) {
		r.parquet, err = parquet.OpenFile(in, size,
			parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.FileReadMode(parquet.ReadModeSync))
		return err
	})
	if in.err != nil {
		return Info{}, in.err
	}
	if err != nil {
		return damaged("%v", err)
	}
	return r.describe(size), nil
}

// describe turns a footer that could be read into an Info.
func (r *Reader) describe(size int64) Info {
	info := Info{Bytes: size, Rows: r.parquet.NumRows()}
	not := func(s State, format string, args ...any) Info {
		info.State, info.Why = s, fmt.Sprintf(format, args...)
		return info
	}
	version, ok := r.parquet.Lookup(metaFormat)
	if !ok {
		for _, kv := range r.parquet.Metadata().KeyValueMetadata {
			if strings.HasPrefix(kv.Key, MetaPrefix) {
				return not(Damaged, "the footer has no %s", metaFormat)
			}
		}
		return not(Foreign, "the footer does not say that localembed made it")
	}
	if version != strconv.Itoa(FormatVersion) {
		return not(OtherVersion, "format version %.20q, this localembed has %d", version, FormatVersion)
	}
	recipe, _ := r.parquet.Lookup(metaRecipe)
	if err := json.Unmarshal([]byte(recipe), &info.Meta.Recipe); err != nil {
		return not(Damaged, "the recipe in the footer cannot be read: %v", err)
	}
	if info.Dim = info.Meta.Recipe.Dims; info.Dim < 1 || info.Dim > maxDim {
		return not(Damaged, "the recipe in the footer has %d dimensions", info.Dim)
	}
	info.Meta.Revision, _ = r.parquet.Lookup(metaRevision)
	info.Meta.Tool, _ = r.parquet.Lookup(metaTool)
	info.Meta.ONNXRuntime, _ = r.parquet.Lookup(metaRuntime)
	info.Meta.Device, _ = r.parquet.Lookup(metaDevice)
	digest, _ := r.parquet.Lookup(metaDigest)
	n, err := hex.Decode(info.Digest[:], []byte(digest[:min(len(digest), 2*len(info.Digest))]))
	if err != nil || n != len(info.Digest) || len(digest) != 2*n {
		return not(Damaged, "the footer has no shard digest")
	}
	if _, ok := r.parquet.Lookup(metaFailures); !ok {
		truncated, _ := r.parquet.Lookup(metaTruncated)
		if info.Truncated, err = strconv.ParseInt(truncated, 10, 64); err != nil {
			return not(Damaged, "the footer does not say how many texts were cut")
		}
		if err := r.bind(); err != nil {
			return not(Damaged, "%v", err)
		}
	}
	rows := int64(0)
	for _, g := range r.parquet.Metadata().RowGroups {
		rows += g.NumRows
		for _, c := range g.Columns {
			m := c.MetaData
			from := m.DataPageOffset
			if m.DictionaryPageOffset != 0 {
				from = m.DictionaryPageOffset
			}
			if g.NumRows < 0 || from < 4 || m.TotalCompressedSize < 0 || from > size || m.TotalCompressedSize > size-from {
				return not(Damaged, "a column lies outside the file")
			}
			if m.Codec != format.Zstd { // with lz4_raw the library takes memory without end
				return not(Damaged, "a column is not compressed with zstd")
			}
		}
	}
	if rows != info.Rows {
		return not(Damaged, "%d rows in the footer, %d in its row groups", info.Rows, rows)
	}
	return info
}

// bind finds the columns that are read back and checks their types.
func (r *Reader) bind() error {
	root := r.parquet.Root()
	for _, c := range []struct {
		to   *int
		kind parquet.Kind
		path []string
	}{
		{&r.hash, parquet.ByteArray, []string{ColumnHash}},
		{&r.tokens, parquet.Int32, []string{ColumnTokens}},
		{&r.truncated, parquet.Boolean, []string{ColumnTruncated}},
		{&r.embedding, parquet.Float, []string{ColumnEmbedding, "list", "element"}},
	} {
		of := root
		for _, name := range c.path {
			if of = of.Column(name); of == nil {
				return fmt.Errorf("the column %s is missing", c.path[0])
			}
		}
		rep := len(c.path) / 3 // 1 for the list
		if !of.Leaf() || of.Type().Kind() != c.kind || of.MaxDefinitionLevel() != rep || of.MaxRepetitionLevel() != rep {
			return fmt.Errorf("the column %s has another type", c.path[0])
		}
		*c.to = of.Index()
	}
	return nil
}

// input remembers what the file system said, so that a disk that fails is not
// taken for a file that is damaged.
type input struct {
	r   io.ReaderAt
	err error
}

func (in *input) ReadAt(p []byte, off int64) (int, error) {
	n, err := in.r.ReadAt(p, off)
	if err != nil && err != io.EOF {
		in.err = err
	}
	return n, err
}

// guard turns a panic of the Parquet library, which some damaged files cause,
// into an error.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return do()
}

// Recipe is short for the recipe in the footer.
func (i Info) Recipe() key.Recipe { return i.Meta.Recipe }

// fault is the error for a file that cannot be used as it is.
func (i Info) fault(path string) error {
	switch i.State {
	case Missing:
		return fault.New(fault.NoSuchFile, "%s", i.Why).In(path).Hinting("run the same command again: it comes back from the store")
	case OtherVersion:
		return fault.New(fault.UnsupportedFile, "%s", i.Why).In(path).Hinting("run the same command again: the shard is written again")
	case Foreign:
		return fault.New(fault.UnsupportedFile, "%s", i.Why).In(path).Hinting("this folder may hold only localembed's files: move it away")
	default:
		return fault.New(fault.CorruptFile, "%s", i.Why).In(path).Hinting("delete it and run the same command again: it comes back from the store")
	}
}
