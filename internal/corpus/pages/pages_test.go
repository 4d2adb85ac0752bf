package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// entry is what a column holds at one place.
type entry struct {
	value    string // little-endian bytes
	null     bool
	def, rep int
}

// write makes a Parquet file of one column v and returns it with its entries as parquet-go was given them.
func write(t testing.TB, node parquet.Node, rows []parquet.Row, options ...parquet.WriterOption) ([]byte, *parquet.File) {
	t.Helper()
	var buf bytes.Buffer
	schema := parquet.NewSchema("test", parquet.Group{"v": node})
	w := parquet.NewWriter(&buf, append(options, schema)...)
	if _, err := w.WriteRows(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), file
}

// chunkOf describes the only chunk of a file of one column.
func chunkOf(file *parquet.File) Chunk {
	leaf := file.Root().Columns()[0]
	for !leaf.Leaf() {
		leaf = leaf.Columns()[0]
	}
	m := file.Metadata().RowGroups[0].Columns[0].MetaData
	offset := m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		offset = m.DictionaryPageOffset
	}
	return Chunk{Kind: leaf.Type().Kind(), Width: leaf.Type().Length(), MaxDef: leaf.MaxDefinitionLevel(),
		MaxRep: leaf.MaxRepetitionLevel(), Codec: m.Codec, NumValues: m.NumValues, Offset: offset, Size: m.TotalCompressedSize}
}

func readAll(file []byte, chunk Chunk) ([]entry, error) {
	var c Column
	if err := c.Open(bytes.NewReader(file), int64(len(file)), chunk); err != nil {
		return nil, err
	}
	var got []entry
	for {
		switch err := c.Next(); {
		case errors.Is(err, io.EOF):
			return got, nil
		case err != nil:
			return got, err
		}
		e := entry{null: c.Null(), def: c.Def, rep: c.Rep}
		if !c.Null() {
			v, err := c.Value()
			if err != nil {
				return got, err
			}
			e.value = string(v)
		}
		got = append(got, e)
	}
}

func entriesOf(rows []parquet.Row) []entry {
	var want []entry
	for _, row := range rows {
		for _, v := range row {
			e := entry{null: v.IsNull(), def: v.DefinitionLevel(), rep: v.RepetitionLevel()}
			if !v.IsNull() {
				e.value = string(bytesOf(v))
			}
			want = append(want, e)
		}
	}
	return want
}

func bytesOf(v parquet.Value) []byte {
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return []byte{1}
		}
		return []byte{0}
	case parquet.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v.Int32()))
	case parquet.Int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(v.Int64()))
	case parquet.Float:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v.Float()))
	case parquet.Double:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v.Double()))
	default:
		return v.ByteArray()
	}
}

type kindCase struct {
	name      string
	node      parquet.Node
	encodings []encoding.Encoding
	value     func(r *rand.Rand) parquet.Value
}

var kinds = []kindCase{
	{"string", parquet.String(), []encoding.Encoding{&parquet.Plain, &parquet.RLEDictionary, &parquet.DeltaLengthByteArray, &parquet.DeltaByteArray},
		func(r *rand.Rand) parquet.Value {
			if r.IntN(9) == 0 {
				return parquet.ByteArrayValue(nil)
			}
			return parquet.ByteArrayValue([]byte(strings.Repeat("shared ", r.IntN(4)) + fmt.Sprint(r.IntN(300))))
		}},
	{"int32", parquet.Leaf(parquet.Int32Type), []encoding.Encoding{&parquet.Plain, &parquet.RLEDictionary, &parquet.DeltaBinaryPacked, &parquet.ByteStreamSplit},
		func(r *rand.Rand) parquet.Value { return parquet.Int32Value(int32(r.Uint32()) >> r.IntN(32)) }},
	{"int64", parquet.Leaf(parquet.Int64Type), []encoding.Encoding{&parquet.Plain, &parquet.RLEDictionary, &parquet.DeltaBinaryPacked, &parquet.ByteStreamSplit},
		func(r *rand.Rand) parquet.Value { return parquet.Int64Value(int64(r.Uint64()) >> r.IntN(64)) }},
	{"bool", parquet.Leaf(parquet.BooleanType), []encoding.Encoding{&parquet.Plain, &parquet.RLE},
		func(r *rand.Rand) parquet.Value { return parquet.BooleanValue(r.IntN(3) == 0) }},
	{"float", parquet.Leaf(parquet.FloatType), []encoding.Encoding{&parquet.Plain, &parquet.RLEDictionary, &parquet.ByteStreamSplit},
		func(r *rand.Rand) parquet.Value { return parquet.FloatValue(float32(r.NormFloat64())) }},
	{"double", parquet.Leaf(parquet.DoubleType), []encoding.Encoding{&parquet.Plain, &parquet.ByteStreamSplit},
		func(r *rand.Rand) parquet.Value { return parquet.DoubleValue(r.NormFloat64()) }},
	{"uuid", parquet.UUID(), []encoding.Encoding{&parquet.Plain, &parquet.RLEDictionary, &parquet.DeltaByteArray, &parquet.ByteStreamSplit},
		func(r *rand.Rand) parquet.Value {
			b := make([]byte, 16)
			binary.LittleEndian.PutUint64(b[8*r.IntN(2):], r.Uint64())
			return parquet.FixedLenByteArrayValue(b)
		}},
}

var codecs = []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Brotli, &parquet.Zstd, &parquet.Lz4Raw}

// rowsOf makes rows of a required, optional or list column.
func rowsOf(k kindCase, shape string, n int, r *rand.Rand) (parquet.Node, []parquet.Row) {
	rows := make([]parquet.Row, n)
	switch shape {
	case "required":
		for i := range rows {
			rows[i] = parquet.Row{k.value(r).Level(0, 0, 0)}
		}
		return k.node, rows
	case "optional":
		for i := range rows {
			if r.IntN(5) == 0 || i/50%3 == 2 {
				rows[i] = parquet.Row{parquet.NullValue().Level(0, 0, 0)}
			} else {
				rows[i] = parquet.Row{k.value(r).Level(0, 1, 0)}
			}
		}
		return parquet.Optional(k.node), rows
	default: // a nullable list of nullable elements
		for i := range rows {
			switch n := r.IntN(6); n {
			case 0, 1: // null list, empty list
				rows[i] = parquet.Row{parquet.NullValue().Level(0, n, 0)}
			default:
				for j := range n - 1 {
					v, def := k.value(r), 3
					if r.IntN(4) == 0 {
						v, def = parquet.NullValue(), 2
					}
					rows[i] = append(rows[i], v.Level(min(j, 1), def, 0))
				}
			}
		}
		return parquet.Optional(parquet.List(parquet.Optional(k.node))), rows
	}
}

// TestReadsWhatWasWritten reads every kind, encoding, shape, codec and page
// version back, with pages of a few rows.
func TestReadsWhatWasWritten(t *testing.T) {
	for _, k := range kinds {
		for _, enc := range k.encodings {
			for _, shape := range []string{"required", "optional", "list"} {
				t.Run(k.name+"/"+enc.String()+"/"+shape, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 2))
					k := k
					k.node = parquet.Encoded(k.node, enc)
					node, rows := rowsOf(k, shape, 400, r)
					want := entriesOf(rows)
					for i, codec := range codecs {
						file, pq := write(t, node, rows, parquet.Compression(codec), parquet.DataPageVersion(1+i%2), parquet.PageBufferSize(700))
						chunk := chunkOf(pq)
						got, err := readAll(file, chunk)
						if err != nil {
							t.Fatalf("%s: %v", codec, err)
						}
						compare(t, got, want)
						checkSkip(t, file, chunk, want)
					}
				})
			}
		}
	}
}

func compare(t *testing.T, got, want []entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("entry %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// checkSkip skips to some rows and reads the entry there.
func checkSkip(t *testing.T, file []byte, chunk Chunk, want []entry) {
	t.Helper()
	var starts []int
	for i, e := range want {
		if e.rep == 0 {
			starts = append(starts, i)
		}
	}
	for _, step := range []int64{1, 7, 190, 399} {
		var c Column
		if err := c.Open(bytes.NewReader(file), int64(len(file)), chunk); err != nil {
			t.Fatal(err)
		}
		skip, next := step, 0
		for row := step; row < int64(len(starts)); row += step + 1 {
			if err := c.Skip(skip); err != nil {
				t.Fatal(err)
			}
			if err := c.Next(); err != nil {
				t.Fatal(err)
			}
			got := entry{null: c.Null(), def: c.Def, rep: c.Rep}
			if ask := row%3 > 0; ask && !c.Null() { // a value that is not asked for is passed over
				v, err := c.Value()
				if err != nil {
					t.Fatal(err)
				}
				got.value = string(v)
			} else {
				got.value = want[starts[row]].value
			}
			if got != want[starts[row]] {
				t.Fatalf("row %d is %+v, want %+v", row, got, want[starts[row]])
			}
			skip, next = step, starts[row]+1
			if chunk.MaxRep > 0 { // to the end of the row
				for c.Next() == nil {
					if c.Rep == 0 {
						c.Hold()
						break
					}
					next++
				}
			}
		}
		for ; ; next++ {
			if err := c.Next(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if next != len(want) {
			t.Fatalf("%d entries after skipping, want %d", next, len(want))
		}
	}
}

// TestDamage flips bits and cuts bytes in every kind of page: no panic, no
// more memory than the pages need, and never more entries than the footer says.
func TestDamage(t *testing.T) {
	withoutChecksums(t)
	for _, k := range kinds {
		for _, enc := range k.encodings {
			t.Run(k.name+"/"+enc.String(), func(t *testing.T) {
				r := rand.New(rand.NewPCG(3, 4))
				k := k
				k.node = parquet.Encoded(k.node, enc)
				for i, codec := range codecs {
					node, rows := rowsOf(k, []string{"required", "optional", "list"}[i%3], 200, r)
					good, pq := write(t, node, rows, parquet.Compression(codec), parquet.DataPageVersion(1+i%2), parquet.PageBufferSize(700))
					chunk := chunkOf(pq)
					for range 40 {
						bad := bytes.Clone(good)
						for range 1 + r.IntN(4) {
							at := int(chunk.Offset) + r.IntN(int(chunk.Size))
							bad[at] ^= 1 << r.IntN(8)
						}
						got, _ := readAll(bad, chunk)
						if int64(len(got)) > chunk.NumValues {
							t.Fatalf("%d entries of %d", len(got), chunk.NumValues)
						}
					}
				}
			})
		}
	}
}

// withoutChecksums lets damage reach the decoders: many writers leave checksums out.
func withoutChecksums(t testing.TB) {
	testOnlyNoChecksums = true
	t.Cleanup(func() { testOnlyNoChecksums = false })
}

func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	node, rows := rowsOf(kinds[0], "required", 100, r)
	file, pq := write(t, node, rows, parquet.Compression(&parquet.Uncompressed))
	chunk := chunkOf(pq)
	at := bytes.LastIndex(file[:chunk.Offset+chunk.Size], []byte("shared"))
	file[at] = 'X'
	if _, err := readAll(file, chunk); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Fatalf("got %v, want an error of the checksum", err)
	}
}

func TestUnknownCodecIsUnsupported(t *testing.T) {
	var c Column
	err := c.Open(bytes.NewReader(nil), 100, Chunk{Codec: format.LZO})
	if err == nil || !strings.Contains(err.Error(), "LZO") {
		t.Fatalf("got %v, want an error that names LZO", err)
	}
}

// TestShiftedValues drops a null from the definition levels: the page's values
// would then belong to other rows.
func TestShiftedValues(t *testing.T) {
	withoutChecksums(t)
	rows := []parquet.Row{}
	for i := range 16 {
		v := parquet.ByteArrayValue([]byte(fmt.Sprint("text ", i))).Level(0, 1, 0)
		if i == 3 {
			v = parquet.NullValue().Level(0, 0, 0)
		}
		rows = append(rows, parquet.Row{v})
	}
	for _, page := range []struct {
		version int
		enc     encoding.Encoding
	}{{1, &parquet.Plain}, {2, &parquet.Plain}, {2, &parquet.RLEDictionary}} {
		node := parquet.Optional(parquet.Encoded(parquet.String(), page.enc))
		file, pq := write(t, node, rows, parquet.Compression(&parquet.Uncompressed), parquet.DataPageVersion(page.version))
		chunk := chunkOf(pq)
		bytesOf := file[chunk.Offset:][:chunk.Size]
		levels := bytes.LastIndex(bytesOf, []byte{3, 0xf7}) // a group of eight levels; bit 3 is the null
		if levels < 0 {
			t.Fatal("the levels are not where they were")
		}
		for _, changed := range []byte{0xff, 0xf5, 0xf6} { // no null, two nulls
			bytesOf[levels+1] = changed
			if _, err := readAll(file, chunk); err == nil {
				t.Errorf("version %d, %s: levels %#x were read without an error", page.version, page.enc, changed)
			}
		}
	}
}

// TestClaims gives a footer and a page header that claim what is not there.
func TestClaims(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	node, rows := rowsOf(kinds[0], "required", 100, r)
	file, pq := write(t, node, rows)
	for name, change := range map[string]func(*Chunk){
		"a value less": func(c *Chunk) { c.NumValues-- },
		"a value more": func(c *Chunk) { c.NumValues++ },
		"a byte less":  func(c *Chunk) { c.Size-- },
		"past the end": func(c *Chunk) { c.Size = int64(len(file)) },
		"before it":    func(c *Chunk) { c.Offset = -1 },
		"wrapping":     func(c *Chunk) { c.Offset, c.Size = math.MaxInt64, math.MaxInt64 },
		"negative":     func(c *Chunk) { c.NumValues = -1 },
	} {
		chunk := chunkOf(pq)
		change(&chunk)
		if _, err := readAll(file, chunk); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
	node = parquet.Encoded(parquet.String(), &parquet.Plain)
	zeros := parquet.Row{parquet.ByteArrayValue(make([]byte, 2<<20)).Level(0, 0, 0)}
	file, pq = write(t, node, []parquet.Row{zeros}, parquet.Compression(&parquet.Zstd))
	if _, err := readAll(file, chunkOf(pq)); err == nil || !strings.Contains(err.Error(), "claims to hold") {
		t.Errorf("a page of zeros: got %v, want an error of its size", err)
	}
}
