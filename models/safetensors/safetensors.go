// Package safetensors reads the header of a safetensors file: which tensors it
// holds, of which type and shape, and at which bytes. The values themselves are
// left in the file, for ONNX Runtime to map.
//
//	0        8          8+n                      end of file
//	| uint64 | n bytes  | data                 |
//	|   n    | JSON     | tensors, as declared |
//
// The JSON is an object of name → {"dtype", "shape", "data_offsets": [from, to)},
// offsets counted from the start of data, and an optional "__metadata__".
//
// A file is foreign until it is checked: the header's length, every range and
// every product of a shape are checked before anything of that size is
// allocated, and a Tensor that Open returned lies inside the file.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
)

// MaxHeader is the largest header that is read, in bytes; the format's own limit.
const MaxHeader = 100_000_000

// Tensor is where one tensor lies.
type Tensor struct {
	DType  string  // F32, F16, BF16, I64 …, as the file spells it
	Shape  []int64 // empty for a scalar
	Offset int64   // first byte, from the start of the file
	Length int64   // bytes: the shape's product × the size of the type
}

// sizes of the types in bytes.
var sizes = map[string]int64{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
	"U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}

// Open reads and checks the header of a file.
func Open(path string) (map[string]Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return Read(f, st.Size())
}

// Read reads and checks a header from r, the start of a file of size bytes.
func Read(r io.Reader, size int64) (map[string]Tensor, error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, fmt.Errorf("the file of %d bytes is too short to be a safetensors file", size)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeader {
		return nil, fmt.Errorf("the header claims %d bytes, more than the %d that the format allows", n, MaxHeader)
	}
	start := 8 + int64(n)
	if start > size {
		return nil, fmt.Errorf("the header claims %d bytes, but the file has only %d: it is cut off or no safetensors file", n, size)
	}
	head := make([]byte, n)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("the header ends early: %w", err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(head, &raw); err != nil {
		return nil, fmt.Errorf("the header is not valid JSON: %v", err)
	}
	names := make([]string, 0, len(raw))
	for name := range raw {
		if name != "__metadata__" {
			names = append(names, name)
		}
	}
	sort.Strings(names) // the same file always gives the same complaint
	out := make(map[string]Tensor, len(names))
	for _, name := range names {
		t, err := place(raw[name], start, size)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

// place checks one entry of a header whose data starts at start.
func place(raw json.RawMessage, start, size int64) (Tensor, error) {
	var e struct {
		DType   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Tensor{}, fmt.Errorf("its entry in the header is not valid: %v", err)
	}
	want, ok := sizes[e.DType]
	if !ok {
		return Tensor{}, fmt.Errorf("unknown type %q", e.DType)
	}
	for _, d := range e.Shape {
		if d < 0 || (d > 0 && want > math.MaxInt64/d) {
			return Tensor{}, fmt.Errorf("impossible shape %v", e.Shape)
		}
		want *= d
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from < 0 || to < from || to > size-start {
		return Tensor{}, fmt.Errorf("it claims the bytes %d to %d, but the file holds %d bytes of data: it is cut off", from, to, size-start)
	}
	if to-from != want {
		return Tensor{}, fmt.Errorf("%s%v needs %d bytes, but it has %d", e.DType, e.Shape, want, to-from)
	}
	return Tensor{DType: e.DType, Shape: e.Shape, Offset: start + from, Length: want}, nil
}
