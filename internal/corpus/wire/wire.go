// Package wire walks Thrift compact structures that strangers wrote, before
// anything decodes them: a decoder that believes a list's declared length
// allocates for it, and one that follows nesting without end exhausts the
// stack. Neither can be recovered from.
package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// maxDepth is above any nesting that Parquet's own structures reach.
const maxDepth = 64

// ErrMalformed is returned for bytes that are no Thrift structure.
var ErrMalformed = errors.New("malformed Thrift structure")

// Types of the compact protocol.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeByte   = 3
	typeI16    = 4
	typeI32    = 5
	typeI64    = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeMap    = 11
	typeStruct = 12
)

// StructSize is the length in bytes of the structure at the start of b. The error is
// io.ErrUnexpectedEOF if b ends within it, the size then the least that it can
// have, and ErrMalformed if no more bytes could make it whole.
func StructSize(b []byte) (int, error) {
	w := walker{b: b, binary: -1}
	if err := w.structure(0); err != nil {
		return w.at + w.lacks, err
	}
	return w.at, nil
}

// Shorten leaves the value that b ends within empty, if that is of bytes: with what
// follows the value, the result is the same structure but for it. skip is how many
// bytes of the value follow b, 0 if b ends elsewhere.
func Shorten(b []byte) (short []byte, skip int) {
	w := walker{b: b, binary: -1}
	if err := w.structure(0); !errors.Is(err, io.ErrUnexpectedEOF) || w.binary < 0 {
		return b, 0
	}
	return append(b[:w.binary], 0), w.lacks - (len(b) - w.at)
}

type walker struct {
	b      []byte
	at     int
	lacks  int // bytes that follow at, of which b does not have all
	binary int // where the length of the bytes stands that b ends within, -1 elsewhere
}

func (w *walker) structure(depth int) error {
	if depth > maxDepth {
		return ErrMalformed
	}
	for {
		head, err := w.byte()
		if err != nil {
			return err
		}
		if head == 0 {
			return nil
		}
		if head>>4 == 0 { // the field id follows in full
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		// A boolean field's value is in its type.
		if t := head & 0xf; t != typeTrue && t != typeFalse {
			if err := w.value(t, depth); err != nil {
				return err
			}
		}
	}
}

func (w *walker) value(t byte, depth int) error {
	switch t {
	case typeTrue, typeFalse, typeByte:
		return w.skip(1)
	case typeI16, typeI32, typeI64:
		_, err := w.varint()
		return err
	case typeDouble:
		return w.skip(8)
	case typeBinary:
		start := w.at
		n, err := w.varint()
		if err != nil {
			return err
		}
		err = w.skip(n)
		if err != nil {
			w.binary = start
		}
		return err
	case typeList, typeSet:
		return w.list(depth + 1)
	case typeMap:
		return w.mapping(depth + 1)
	case typeStruct:
		return w.structure(depth + 1)
	default:
		return ErrMalformed
	}
}

func (w *walker) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	return w.items(n, depth, head&0xf)
}

func (w *walker) mapping(depth int) error {
	n, err := w.varint()
	if err != nil || n == 0 {
		return err
	}
	types, err := w.byte()
	if err != nil {
		return err
	}
	return w.items(n, depth, types>>4, types&0xf)
}

// items walks n items, each of one value per type. Every value is at least a
// byte long, so a count above the bytes left is never walked to its end.
func (w *walker) items(n uint64, depth int, types ...byte) error {
	if depth > maxDepth {
		return ErrMalformed
	}
	if err := w.has(n); err != nil {
		return err
	}
	for range n {
		for _, t := range types {
			if err := w.value(t, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) byte() (byte, error) {
	if err := w.has(1); err != nil {
		return 0, err
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *walker) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.at:])
	if n == 0 {
		return 0, w.has(uint64(len(w.b) - w.at + 1))
	}
	if n < 0 {
		return 0, ErrMalformed
	}
	w.at += n
	return v, nil
}

func (w *walker) skip(n uint64) error {
	if err := w.has(n); err != nil {
		return err
	}
	w.at += int(n)
	return nil
}

func (w *walker) has(n uint64) error {
	if n <= uint64(len(w.b)-w.at) {
		return nil
	}
	w.lacks = int(min(n, math.MaxInt32))
	return io.ErrUnexpectedEOF
}
