package onnx

import (
	"errors"
	"fmt"
	"strings"

	"localembed/internal/fault"
)

// Kind says what can be done about a failed Run.
type Kind int

const (
	Transient   Kind = iota // it may work when tried again
	OutOfMemory             // a smaller batch may work
	Fatal                   // trying again cannot help: a bug, or a model that does not fit
	Lost                    // the device is gone: it cannot run this batch nor any other
)

func (k Kind) String() string {
	return [...]string{"transient", "out of memory", "fatal", "lost"}[k]
}

// Error is a failure of a device. The *fault.Error in it is what the user is told.
type Error struct {
	Kind   Kind
	Device string
	Fault  *fault.Error
}

func (e *Error) Error() string { return e.Fault.Error() }

func (e *Error) Unwrap() error { return e.Fault }

// KindOf is the kind of a device's failure; Fatal for any other error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Fatal
}

// fatal is a failure that no other attempt can mend.
func (s *Session) fatal(f *fault.Error) *Error { return &Error{Kind: Fatal, Device: s.name, Fault: f} }

// failed sorts what ONNX Runtime said about a Run. Its errors are text.
func (s *Session) failed(items, length int, err error) *Error {
	e := &Error{Device: s.name, Fault: fault.New(fault.DeviceFailed, "%s: a batch of %d texts of %d tokens failed", s.name, items, length).Because(oneLine(err))}
	text := err.Error()
	for _, sign := range []string{"Failed to allocate memory", "bad_alloc", "out of memory", "ALLOC_FAILED", "BFCArena"} {
		if strings.Contains(text, sign) {
			e.Kind = OutOfMemory
			e.Fault.Hinting("use smaller batches, fewer devices or a machine with more memory; the same command goes on where it stopped")
			return e
		}
	}
	for _, sign := range []string{"invalid dimensions for output", "shape verification failed"} {
		if strings.Contains(text, sign) {
			e.Kind = Fatal
			e.Fault.Class, e.Fault.Message = fault.BadVectors, fmt.Sprintf("%s: the graph gives other vectors for %d texts than %d of the model's size", s.name, items, items)
			e.Fault.Hinting("the model folder contradicts itself: fetch it again; nothing of the batch is kept")
			return e
		}
	}
	for _, sign := range []string{"illegal memory access", "device-side assert", "launch failure", "ECC", "has fallen off the bus", "devices unavailable", "illegal address"} {
		if strings.Contains(text, sign) {
			// CUDA gives up the whole context: each later call fails alike.
			e.Kind = Lost
			e.Fault.Hinting("look at the GPU (nvidia-smi, the kernel's log); the same command goes on where it stopped")
			return e
		}
	}
	e.Fault.Hinting("run the same command again to go on; if it fails at the same place, the graph or the library does not fit this machine")
	return e
}

// oneLine is what ONNX Runtime said, on one line.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
