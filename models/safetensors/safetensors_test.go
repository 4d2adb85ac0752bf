package safetensors

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// file makes a safetensors file of a header and zeros.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, data)...)
}

func TestRead(t *testing.T) {
	b := file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`, 32)
	got, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	a := got["a"]
	if len(got) != 2 || a.DType != "F32" || a.Offset != int64(len(b))-24 || a.Length != 24 || len(a.Shape) != 2 {
		t.Fatalf("got %+v", got)
	}
	if s := got["s"]; s.Length != 8 || len(s.Shape) != 0 {
		t.Fatalf("scalar: got %+v", s)
	}
}

func TestReadRefuses(t *testing.T) {
	one := func(entry string) []byte { return file(`{"a":`+entry+`}`, 24) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":             {nil, "too short"},
		"a prefix only":     {make([]byte, 7), "too short"},
		"huge header":       {bytes.Repeat([]byte{0xff}, 64), "more than"},
		"cut in the header": {file(`{"a":1}`, 0)[:10], "cut off"},
		"not JSON":          {file(`{"a":`, 8), "not valid JSON"},
		"not an object":     {file(`[]`, 8), "not valid JSON"},
		"entry":             {one(`{"dtype":7}`), "not valid"},
		"type":              {one(`{"dtype":"Q4","shape":[6],"data_offsets":[0,24]}`), `unknown type "Q4"`},
		"negative shape":    {one(`{"dtype":"F32","shape":[-6],"data_offsets":[0,24]}`), "impossible shape"},
		"overflow":          {one(`{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,24]}`), "impossible shape"},
		"overflow to zero":  {one(`{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}`), "impossible shape"},
		"past the end":      {one(`{"dtype":"F32","shape":[7],"data_offsets":[0,28]}`), "cut off"},
		"backwards":         {one(`{"dtype":"F32","shape":[1],"data_offsets":[8,4]}`), "cut off"},
		"before the start":  {one(`{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}`), "cut off"},
		"shape and size":    {one(`{"dtype":"F32","shape":[5],"data_offsets":[0,24]}`), "needs 20 bytes, but it has 24"},
		"offset overflow":   {one(`{"dtype":"F32","shape":[1],"data_offsets":[9223372036854775803,9223372036854775807]}`), "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.file), int64(len(c.file)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want a message with %q", err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}`, 24))
	f.Add(file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		got, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for name, x := range got {
			if x.Offset < 8 || x.Length < 0 || x.Offset+x.Length > int64(len(b)) {
				t.Fatalf("%q lies outside the file: %+v", name, x)
			}
			n := sizes[x.DType]
			for _, d := range x.Shape {
				n *= d
			}
			if n != x.Length {
				t.Fatalf("%q: shape and length disagree: %+v", name, x)
			}
		}
	})
}
