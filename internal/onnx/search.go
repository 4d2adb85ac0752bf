package onnx

import (
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"localembed/internal/fault"
)

// Env names the environment variable that gives the library.
const Env = "LOCALEMBED_ORT_LIB"

// find returns the library's absolute path: the given one, the environment's,
// beside the executable, or in .cache/lib of the working folder, the
// executable's folder or a folder above them.
func find(lib string) (string, error) {
	given := []struct{ from, path string }{{"--ort-lib", lib}, {Env, os.Getenv(Env)}}
	for _, g := range given {
		if g.path == "" {
			continue
		}
		if found := at(g.path); found != "" {
			return found, nil
		}
		// Asked for means used, or stopped.
		return "", fault.New(fault.DeviceUnavailable, "%s names an ONNX Runtime library that is not there", g.from).In(g.path).
			Hinting("give the path of libonnxruntime, or of the folder that it lies in")
	}
	var looked []string
	for _, dir := range folders() {
		if found := at(dir); found != "" {
			return found, nil
		}
		looked = append(looked, dir)
	}
	return "", fault.New(fault.DeviceUnavailable, "the ONNX Runtime library (%s) was not found; looked in %s", libraryName(), strings.Join(looked, ", ")).
		Hinting("`make build` in the project fetches it; or give its path with --ort-lib or in %s", Env)
}

// folders lists where a library may lie that nobody named.
func folders() []string {
	var out []string
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			out = append(out, dir)
		}
	}
	var starts []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		add(filepath.Dir(exe))
		starts = append(starts, filepath.Dir(exe))
	}
	if cwd, err := os.Getwd(); err == nil {
		starts = append([]string{cwd}, starts...)
	}
	for _, dir := range starts {
		for {
			add(filepath.Join(dir, ".cache", "lib"))
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return out
}

// at returns the library at a path that is the file or its folder, or "". In a
// folder the plain name wins over names with a version, the last of which wins.
func at(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if st.IsDir() {
		names, _ := filepath.Glob(filepath.Join(path, libraryGlob()))
		sort.Strings(names)
		if len(names) == 0 {
			return ""
		}
		plain := filepath.Join(path, libraryName())
		path = names[len(names)-1]
		if st, err := os.Stat(plain); err == nil && st.Mode().IsRegular() {
			path = plain
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return abs
}

func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}

func libraryGlob() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime*.dylib"
	}
	return "libonnxruntime.so*"
}
