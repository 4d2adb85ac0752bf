package pages

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// The old LZ4 codec is one block, or blocks behind their sizes.
func TestOldLZ4(t *testing.T) {
	text := []byte(strings.Repeat("some text, ", 50))
	block := func(b []byte) []byte {
		out := make([]byte, lz4.CompressBlockBound(len(b)))
		n, err := lz4.CompressBlock(b, out, nil)
		if err != nil || n == 0 {
			t.Fatalf("%d, %v", n, err)
		}
		return out[:n]
	}
	framed := func(b []byte) []byte {
		packed := block(b)
		head := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
		return append(binary.BigEndian.AppendUint32(head, uint32(len(packed))), packed...)
	}
	two := append(framed(text[:200]), framed(text[200:])...)
	var d decompressor
	for name, src := range map[string][]byte{"bare": block(text), "one block": framed(text), "two blocks": two} {
		dst := make([]byte, len(text))
		if err := d.decode(format.Lz4, dst, src); err != nil || !bytes.Equal(dst, text) {
			t.Errorf("%s: %v, %.20q", name, err, dst)
		}
	}
	for name, src := range map[string][]byte{"cut": two[:len(two)-1], "a block less": framed(text[:200]), "a byte more": append(two, 0), "nothing": {}} {
		if err := d.decode(format.Lz4, make([]byte, len(text)), src); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
