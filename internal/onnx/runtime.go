// Package onnx is the only package that knows ONNX Runtime. It finds and loads
// the library and runs a model's graph on a device.
//
// # What it guarantees
//
//   - A Run either fills out with the vectors of its batch, bit-identical for
//     any number of items, or returns an *Error that says what to do about it.
//   - On one thread a batch of one exact length runs without an attention mask.
//     The graph with a mask is opened when the first padded batch comes.
//   - Ids are checked against the vocabulary before they reach a kernel.
//
// # Threads
//
// A Session has one Run in flight and belongs to one goroutine, which calls
// runtime.LockOSThread first and stays: ONNX Runtime keeps state per thread.
// Sessions of one Runtime run beside each other. Close comes after the last
// Run has returned; a session closed during Run is a use after free, which is
// why Run and Close exclude each other by a lock.
//
// runtime.go loads the library, search.go finds it, session.go runs batches,
// inputs.go fills what a graph wants beside the ids, errors.go sorts failures,
// memory.go says how many sessions fit, cuda.go what CUDA is missing.
package onnx

import (
	"path/filepath"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"localembed/internal/fault"
)

// Runtime is the loaded library. There is one a process.
type Runtime struct {
	lib string
}

// loaded guards the library's global state: it is loaded once, and closed when
// the last user has closed its Runtime.
var loaded struct {
	sync.Mutex
	rt    *Runtime
	users int
}

// Load finds and loads ONNX Runtime. lib is the path that the user gave, of the
// file or of its folder, or "". Every call needs its own Close.
func Load(lib string) (*Runtime, error) {
	path, err := find(lib)
	if err != nil {
		return nil, err
	}
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.rt != nil {
		if loaded.rt.lib != path {
			return nil, fault.New(fault.DeviceUnavailable, "another ONNX Runtime is loaded already, from %s", loaded.rt.lib).In(path).
				Hinting("use one library in a process")
		}
		loaded.users++
		return loaded.rt, nil
	}
	ort.SetSharedLibraryPath(path)
	// It prints nothing of its own: an error comes back as one, and what a
	// warning tells is of no use to the user.
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return nil, fault.New(fault.DeviceUnavailable, "ONNX Runtime cannot be loaded").In(path).Because(oneLine(err)).
			Hinting("localembed needs version %s or later for this kind of machine; `make build` fetches one that fits", oldest)
	}
	loaded.rt, loaded.users = &Runtime{lib: path}, 1
	return loaded.rt, nil
}

// oldest is the first version with the programming interface that is used.
const oldest = "1.24"

// Version is the library's version, such as 1.31.1.
func (r *Runtime) Version() string { return ort.GetVersion() }

// Library is the path of the library.
func (r *Runtime) Library() string { return r.lib }

// Close unloads the library once each Load was followed by a Close. All
// sessions must be closed before.
func (r *Runtime) Close() error {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.users--; loaded.users > 0 {
		return nil
	}
	loaded.rt = nil
	if err := ort.DestroyEnvironment(); err != nil {
		return fault.New(fault.DeviceFailed, "ONNX Runtime could not be closed").In(filepath.Base(r.lib)).Because(err)
	}
	return nil
}
