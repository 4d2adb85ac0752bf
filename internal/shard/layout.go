package shard

import (
	"encoding/json"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/key"
)

// Names of the columns that localembed adds.
const (
	ColumnFile      = "file"
	ColumnRow       = "row"
	ColumnChunk     = "chunk"
	ColumnHash      = "content_hash"
	ColumnTokens    = "n_tokens"
	ColumnTruncated = "truncated"
	ColumnEmbedding = "embedding"
)

// Names of the columns that only dead letters have.
const (
	ColumnClass     = "class"
	ColumnAttempts  = "attempts"
	ColumnMessage   = "message"
	ColumnText      = "text"
	ColumnTextBytes = "text_bytes"
)

// Meta is what a footer says of a shard's origin.
type Meta struct {
	Tool        string // name and version
	ONNXRuntime string // version
	Device      string // kind: cpu, cuda
	Revision    string // the hub's commit that the model was fetched at, "" for a folder
	Recipe      key.Recipe
}

// Layout is the columns of a job's shards and dead letters. It does not change
// while it is used and may be shared by goroutines.
type Layout struct {
	meta    Meta
	fields  []column.Field // id first if any, then the kept ones
	hasID   bool
	chunked bool
	dim     int
	group   int64 // rowGroupBytes; tests make it smaller

	schema   *parquet.Schema
	failures *parquet.Schema
	flat     []flatColumn // the fields' leaf columns, in the order of a column.Set
	arrow    string       // the value of ARROW:schema, "" if the schema has no faithful Arrow form
	describe []byte
}

// flatColumn says where a leaf column of the corpus goes.
type flatColumn struct {
	leafInfo
	field  string
	id     bool
	column int // of the shard's leaf columns
}

// NewLayout makes the layout for fields as the corpus gives them (the id column
// first if hasID, then the kept ones); chunked says that a text is an element of
// a list. Names that clash with ours or with each other are a usage error.
func NewLayout(fields []column.Field, hasID, chunked bool, meta Meta) (*Layout, error) {
	if meta.Recipe.Dims < 1 || meta.Recipe.Dims > maxDim {
		return nil, fault.New(fault.Internal, "a recipe with %d dimensions has no shards", meta.Recipe.Dims)
	}
	l := &Layout{meta: meta, fields: fields, hasID: hasID, chunked: chunked, dim: meta.Recipe.Dims, group: rowGroupBytes}
	if err := l.checkNames(); err != nil {
		return nil, err
	}
	root, column := l.columns()
	l.schema = parquet.NewSchema("localembed", group{parquet.Group{}, root})
	l.failures = parquet.NewSchema("localembed_failures", group{parquet.Group{}, l.failureColumns()})
	for i, f := range fields {
		for j, info := range leaves(f.Node, 0, 0) {
			l.flat = append(l.flat, flatColumn{info, f.Name, hasID && i == 0, column[i] + j})
		}
	}
	var err error
	if l.arrow, err = arrowSchema(root, l.dim); err != nil {
		return nil, err
	}
	l.describe = describe(root, l.dim)
	return l, nil
}

func (l *Layout) checkNames() error {
	taken := map[string]string{
		ColumnFile: "a column of every shard", ColumnRow: "a column of every shard",
		ColumnHash: "a column of every shard", ColumnTokens: "a column of every shard",
		ColumnTruncated: "a column of every shard", ColumnEmbedding: "a column of every shard",
	}
	if l.chunked {
		taken[ColumnChunk] = "a column of every shard of a list of texts"
	}
	dead := map[string]bool{
		ColumnClass: true, ColumnAttempts: true, ColumnMessage: true, ColumnText: true, ColumnTextBytes: true,
	}
	for i, f := range l.fields {
		what, hint := "kept column", "leave it out of --keep, or rename it in the corpus"
		if l.hasID && i == 0 {
			what, hint = "id column", "name another one with --id, or rename it in the corpus"
			if dead[f.Name] {
				return fault.New(fault.Usage, "the id column %q has the name of a column of the dead letters", f.Name).Hinting("%s", hint)
			}
		}
		if by, ok := taken[f.Name]; ok {
			return fault.New(fault.Usage, "the %s %q has the name of %s", what, f.Name, by).Hinting("%s", hint)
		}
		taken[f.Name] = "another column that is carried over"
	}
	return nil
}

// columns is a shard's columns, and for each field the leaf column it starts at.
func (l *Layout) columns() (root []parquet.Field, start []int) {
	n := 0
	add := func(name string, node parquet.Node) {
		root = append(root, field{node, name})
		n += len(leaves(node, 0, 0))
	}
	carry := func(f column.Field) {
		start = append(start, n)
		add(f.Name, bare(f.Node))
	}
	kept := l.fields
	if l.hasID {
		carry(kept[0])
		kept = kept[1:]
	}
	l.place(add)
	for _, f := range kept {
		carry(f)
	}
	add(ColumnHash, parquet.String())
	add(ColumnTokens, parquet.Leaf(parquet.Int32Type))
	add(ColumnTruncated, parquet.Leaf(parquet.BooleanType))
	add(ColumnEmbedding, parquet.List(parquet.Encoded(parquet.Leaf(parquet.FloatType), &parquet.ByteStreamSplit)))
	return root, start
}

// place adds the columns that say where a document stands in the corpus.
func (l *Layout) place(add func(string, parquet.Node)) {
	add(ColumnFile, parquet.Encoded(parquet.String(), &parquet.RLEDictionary))
	add(ColumnRow, parquet.Encoded(parquet.Leaf(parquet.Int64Type), &parquet.DeltaBinaryPacked))
	if l.chunked {
		add(ColumnChunk, parquet.Leaf(parquet.Int32Type))
	}
}

func (l *Layout) failureColumns() (root []parquet.Field) {
	add := func(name string, node parquet.Node) { root = append(root, field{node, name}) }
	if l.hasID {
		add(l.fields[0].Name, bare(l.fields[0].Node))
	}
	l.place(func(name string, node parquet.Node) {
		if name == ColumnChunk {
			node = parquet.Optional(node) // null for a null or empty list
		}
		add(name, node)
	})
	add(ColumnClass, parquet.String())
	add(ColumnAttempts, parquet.Leaf(parquet.Int32Type))
	add(ColumnMessage, parquet.String())
	add(ColumnText, parquet.Optional(parquet.Leaf(parquet.ByteArrayType)))
	add(ColumnTextBytes, parquet.Leaf(parquet.Int64Type))
	return root
}

// metadata is the footer keys that shards and dead letters share.
func (m Meta) metadata() ([]parquet.WriterOption, error) {
	recipe, err := json.Marshal(m.Recipe)
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterOption{
		parquet.KeyValueMetadata(metaFormat, strconv.Itoa(FormatVersion)),
		parquet.KeyValueMetadata(metaRecipe, string(recipe)),
		parquet.KeyValueMetadata(metaModelDigest, m.Recipe.ModelDigest),
		parquet.KeyValueMetadata(metaTool, m.Tool),
		parquet.KeyValueMetadata(metaRuntime, m.ONNXRuntime),
		parquet.KeyValueMetadata(metaDevice, m.Device),
	}
	if m.Revision != "" {
		options = append(options, parquet.KeyValueMetadata(metaRevision, m.Revision))
	}
	return options, nil
}
