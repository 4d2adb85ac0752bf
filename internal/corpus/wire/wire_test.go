package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

func TestStructSize(t *testing.T) {
	header := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: 1 << 30, CompressedPageSize: -5, CRC: 77}
	header.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{NumValues: 9, IsCompressed: thrift.New(false)})
	header.DataPageHeaderV2.V.Statistics.MaxValue = bytes.Repeat([]byte("x"), 300)
	footer := format.FileMetaData{Version: 2, NumRows: 3, Schema: make([]format.SchemaElement, 20),
		KeyValueMetadata: []format.KeyValue{{Key: "k", Value: "v"}}, RowGroups: make([]format.RowGroup, 2)}
	for _, v := range []any{&header, &footer} {
		b, err := thrift.Marshal(&thrift.CompactProtocol{}, v)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := StructSize(append(bytes.Clone(b), 0xff, 0xff)); err != nil || n != len(b) {
			t.Errorf("%T: size %d, %v, want %d", v, n, err, len(b))
		}
		for n := range b {
			if least, err := StructSize(b[:n]); !errors.Is(err, io.ErrUnexpectedEOF) || least <= n || least > len(b) {
				t.Errorf("%T cut at %d of %d: at least %d, %v", v, n, len(b), least, err)
			}
		}
	}
}

// What is left out where the bytes end within it is empty, and all else as it was.
func TestShorten(t *testing.T) {
	header := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: 1 << 30, CompressedPageSize: -5, CRC: 77}
	header.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{NumValues: 9, IsCompressed: thrift.New(false)})
	header.DataPageHeaderV2.V.Statistics.MaxValue = bytes.Repeat([]byte("x"), 300)
	header.DataPageHeaderV2.V.Statistics.MinValue = bytes.Repeat([]byte("y"), 200)
	whole, err := thrift.Marshal(&thrift.CompactProtocol{}, &header)
	if err != nil {
		t.Fatal(err)
	}
	shortened := 0
	for n := range whole {
		short, skip := Shorten(bytes.Clone(whole[:n]))
		if skip == 0 {
			continue
		}
		shortened++
		var got format.PageHeader
		if err := thrift.Unmarshal(&thrift.CompactProtocol{}, append(short, whole[n+skip:]...), &got); err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		want := header
		if len(got.DataPageHeaderV2.V.Statistics.MaxValue) == 0 {
			want.DataPageHeaderV2.V.Statistics.MaxValue = got.DataPageHeaderV2.V.Statistics.MaxValue
		} else {
			want.DataPageHeaderV2.V.Statistics.MinValue = got.DataPageHeaderV2.V.Statistics.MinValue
		}
		if !reflect.DeepEqual(got, want) || len(got.DataPageHeaderV2.V.Statistics.MinValue) == 200 && len(got.DataPageHeaderV2.V.Statistics.MaxValue) == 300 {
			t.Errorf("cut at %d: %+v", n, got)
		}
	}
	if shortened < 500 {
		t.Errorf("%d places lie within a value", shortened)
	}
}

func TestStructSizeOfBombs(t *testing.T) {
	for name, b := range map[string][]byte{
		"structures": bytes.Repeat([]byte{0x1c}, 1000),
		"lists":      append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1000)...),
		"varint":     append([]byte{0x15}, bytes.Repeat([]byte{0xff}, 11)...),
		"no type":    {0x1d, 0},
	} {
		if _, err := StructSize(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want malformed", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"long list":   {0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0},
		"long binary": {0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0},
		"long map":    {0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x88, 0},
	} {
		if _, err := StructSize(b); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, want an end", name, err)
		}
	}
}
