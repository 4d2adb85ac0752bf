package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"localembed/internal/corpus/pages"
	"localembed/internal/corpus/wire"
	"localembed/internal/fault"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// ownPrefix starts the footer keys that only localembed's own shards have.
const ownPrefix = "localembed."

const (
	magicPlain     = "PAR1"
	magicEncrypted = "PARE"
	tailSize       = 8 // footer length and magic
)

// opened is one Parquet file with its footer read.
type opened struct {
	file    *os.File
	path    string
	size    int64
	modTime time.Time
	digest  [sha256.Size]byte // of the footer
	pq      *parquet.File
}

// openFile reads the footer of a file. Its class is decided from magic and
// sizes before a decoder sees a byte. The caller closes file.
func openFile(path string) (*opened, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Of(err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fault.New(fault.NotParquet, "this is no regular file").In(path).
			Hinting("copy the corpus to a file: Parquet is read from its end")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Of(err)
	}
	o, err := readFooter(f, path)
	if err != nil {
		f.Close()
		return nil, fault.Of(err).In(path)
	}
	return o, nil
}

func readFooter(f *os.File, path string) (o *opened, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o = &opened{file: f, path: path, size: info.Size(), modTime: info.ModTime()}
	footer, err := footerBytes(f, o.size)
	if err != nil {
		return nil, err
	}
	o.digest = sha256.Sum256(footer)
	if size, err := wire.StructSize(footer); err != nil || size > len(footer) {
		return nil, corruptFooter(err)
	}
	// What follows is parquet-go's, which panics on some footers.
	defer func() {
		if p := recover(); p != nil {
			o, err = nil, corruptFooter(fmt.Errorf("%v", p))
		}
	}()
	o.pq, err = parquet.OpenFile(f, o.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.FileReadMode(parquet.ReadModeSync))
	switch {
	case err != nil && encrypted(footer), err == nil && o.pq.Metadata().EncryptionAlgorithm.Value != nil:
		return nil, encryptedFile()
	case err != nil:
		return nil, corruptFooter(err)
	}
	return o, o.check()
}

// footerBytes decides the class of a file from its first and last bytes and
// returns its footer.
func footerBytes(f io.ReaderAt, size int64) ([]byte, error) {
	var head [4]byte
	if n, err := f.ReadAt(head[:], 0); n < len(head) && err != nil && err != io.EOF {
		return nil, err
	}
	switch string(head[:]) {
	case magicPlain:
	case magicEncrypted:
		return nil, encryptedFile()
	default:
		if size == 0 {
			return nil, fault.New(fault.NotParquet, "the file is empty").
				Hinting("a part was probably lost while it was copied: copy it again, or take it out of the corpus")
		}
		return nil, fault.New(fault.NotParquet, "this is no Parquet file: it starts with %q", head[:min(size, 4)]).
			Hinting("take it out of the corpus, or convert it (DuckDB: COPY (FROM 'file.csv') TO 'file.parquet')")
	}
	truncated := fault.New(fault.TruncatedFile, "the file ends in the middle: it starts as Parquet and does not end as Parquet").
		Hinting("copy it again, or write it again if its writer was interrupted")
	if size < int64(len(head)+tailSize) {
		return nil, truncated
	}
	var tail [tailSize]byte
	if _, err := f.ReadAt(tail[:], size-tailSize); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case magicPlain:
	case magicEncrypted:
		return nil, encryptedFile()
	default:
		return nil, truncated
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-int64(len(head)+tailSize) {
		return nil, fault.New(fault.CorruptFile, "the footer claims %d bytes of a file of %d", n, size).
			Hinting(hintDamaged)
	}
	footer := make([]byte, n)
	if _, err := f.ReadAt(footer, size-tailSize-n); err != nil {
		return nil, err
	}
	return footer, nil
}

const hintDamaged = "the file is damaged: copy or write it again, or leave it out of the corpus"

func corruptFooter(cause error) *fault.Error {
	return fault.New(fault.CorruptFile, "the footer does not hold together").Because(cause).Hinting(hintDamaged)
}

func encryptedFile() *fault.Error {
	return fault.New(fault.EncryptedFile, "the file is encrypted").
		Hinting("write it again without encryption: keys are not read")
}

// encrypted reports whether a footer that parquet-go refuses, because it is
// signed, says that columns are encrypted.
func encrypted(footer []byte) bool {
	var m format.FileMetaData
	size, err := wire.StructSize(footer)
	if err != nil || thrift.Unmarshal(&thrift.CompactProtocol{}, footer[:size], &m) != nil {
		return false
	}
	return m.EncryptionAlgorithm.Value != nil
}

// check refuses what the schema alone does not show.
func (o *opened) check() error {
	for _, leaf := range leavesOf(o.pq.Root()) {
		// A leaf that is annotated as a group has no kind: asking panics.
		_, _ = leaf.Type().Kind(), leaf.Type().Length()
	}
	meta := o.pq.Metadata()
	for i := range meta.Schema {
		if r := meta.Schema[i].RepetitionType; r.Valid && (r.V < format.Required || r.V > format.Repeated) {
			return fault.New(fault.CorruptFile, "the column %q is neither required nor optional nor repeated", meta.Schema[i].Name).Hinting(hintDamaged)
		}
	}
	for _, kv := range meta.KeyValueMetadata {
		if strings.HasPrefix(kv.Key, ownPrefix) {
			return fault.New(fault.Usage, "the file was made by localembed: it holds vectors, not a corpus").
				Hinting("leave it out of the corpus; name the output folder only as --out")
		}
	}
	rows := int64(0)
	for i := range meta.RowGroups {
		n := meta.RowGroups[i].NumRows
		if n < 0 || rows+n < rows {
			return fault.New(fault.CorruptFile, "a row group claims %d rows", n).AtRowGroup(i).Hinting(hintDamaged)
		}
		rows += n
	}
	if rows != meta.NumRows {
		return fault.New(fault.CorruptFile, "the footer claims %d rows and its row groups %d", meta.NumRows, rows).Hinting(hintDamaged)
	}
	return nil
}

// checkLeaf refuses column chunks whose claims cannot be true.
func (o *opened) checkLeaf(leaf *parquet.Column) error {
	groups := o.pq.Metadata().RowGroups
	for i := range groups {
		m := &groups[i].Columns[leaf.Index()].MetaData
		switch {
		case groups[i].Columns[leaf.Index()].FilePath != "":
			return fault.New(fault.UnsupportedFile, "the column %q lies in another file, %q, which is not read", pathOf(leaf), groups[i].Columns[leaf.Index()].FilePath).
				AtRowGroup(i).Hinting("leave the file out and name the files that it refers to")
		case !isNull(leaf) && parquet.Kind(m.Type) != leaf.Type().Kind(), !slices.Equal(m.PathInSchema, leaf.Path()):
			return fault.New(fault.CorruptFile, "the column %q has chunks of another column", pathOf(leaf)).AtRowGroup(i).Hinting(hintDamaged)
		case m.TotalUncompressedSize > maxChunk || pages.Exploding(m.TotalUncompressedSize, m.TotalCompressedSize):
			return fault.New(fault.CorruptFile, "the column %q claims to hold %d bytes in %d", pathOf(leaf), m.TotalUncompressedSize, m.TotalCompressedSize).
				AtRowGroup(i).Hinting("write the file again with smaller row groups, if it can be trusted")
		case leaf.MaxRepetitionLevel() == 0 && m.NumValues != groups[i].NumRows:
			return fault.New(fault.CorruptFile, "the column %q claims %d values for %d rows", pathOf(leaf), m.NumValues, groups[i].NumRows).
				AtRowGroup(i).Hinting(hintDamaged)
		}
	}
	return nil
}

// maxChunk is the largest column chunk that is believed.
const maxChunk = 4 << 30

func pathOf(c *parquet.Column) string { return strings.Join(c.Path(), ".") }

// chunk describes leaf's chunk in a row group.
func (o *opened) chunk(leaf *parquet.Column, group int) pages.Chunk {
	m := &o.pq.Metadata().RowGroups[group].Columns[leaf.Index()].MetaData
	offset := m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < offset {
		offset = d
	}
	kind := leaf.Type().Kind()
	if isNull(leaf) {
		kind = parquet.Kind(m.Type)
	}
	return pages.Chunk{
		Kind: kind, Width: leaf.Type().Length(),
		MaxDef: leaf.MaxDefinitionLevel(), MaxRep: leaf.MaxRepetitionLevel(),
		Codec: m.Codec, NumValues: m.NumValues, Offset: offset, Size: m.TotalCompressedSize,
		Padded: strings.HasPrefix(o.pq.Metadata().CreatedBy, "fastparquet"),
	}
}
