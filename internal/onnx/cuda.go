package onnx

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

// The message is of this thread, so one call does both.
static const char *missing(const char *path) {
	void *lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (lib == NULL)
		return dlerror();
	dlclose(lib);
	return NULL;
}
*/
import "C"

import (
	"path/filepath"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"localembed/internal/fault"
)

// GPUs is how many NVIDIA GPUs the driver shows.
func GPUs() int {
	devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
	return len(devices)
}

// CUDA says why the library can open no CUDA device, nil if it can: it asks the library for
// its CUDA provider, which needs CUDA and cuDNN.
func (r *Runtime) CUDA() error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return fault.New(fault.DeviceUnavailable, "this ONNX Runtime was built without CUDA").In(r.lib).
			Hinting("take the GPU build of the same version, with its libonnxruntime_providers_*.so beside it, and name it with --ort-lib")
	}
	defer cuda.Destroy()
	session, err := ort.NewSessionOptions()
	if err != nil {
		return fault.New(fault.DeviceFailed, "ONNX Runtime makes no session options").In(r.lib).Because(oneLine(err))
	}
	defer session.Destroy()
	if err := session.AppendExecutionProviderCUDA(cuda); err != nil {
		provider := filepath.Join(filepath.Dir(r.lib), "libonnxruntime_providers_cuda.so")
		why := cannotLoad(provider)
		if why == "" {
			why = oneLine(err).Error()
		}
		return fault.New(fault.DeviceUnavailable, "the CUDA provider cannot be loaded: %s", why).In(provider).
			Hinting("put CUDA's and cuDNN's libraries of the versions that it was built for where the loader finds them (LD_LIBRARY_PATH)")
	}
	return nil
}

// cannotLoad says what is missing for a shared library to be loaded, "" if nothing is.
// ONNX Runtime itself says only that it could not.
func cannotLoad(path string) string {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	if why := C.missing(p); why != nil {
		return C.GoString(why)
	}
	return ""
}
