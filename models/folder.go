package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"localembed/internal/fault"
)

// maxJSON is the largest JSON file that is read, in bytes. The largest
// tokenizer.json of a popular model has 17 MB.
const maxJSON = 64 << 20

// folder is a model folder. It remembers each file that was read, because
// those files decide the vectors and go into the digest.
type folder struct {
	dir   string
	asked string            // the ONNX file that the caller named, relative to dir
	read  map[string][]byte // content by path relative to dir; JSON files only

	// stats are those of the files in the digest, as they were when they were read.
	stats map[string]fs.FileInfo
}

func openFolder(dir string) (*folder, error) {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NoSuchFile, "no such model folder").In(dir).
			Hinting("give a folder that holds config.json, tokenizer.json and model.safetensors or an ONNX file")
	case err != nil:
		return nil, fault.Of(err)
	case st.IsDir():
		return newFolder(dir), nil
	case filepath.Ext(dir) == ".onnx":
		return folderOf(dir)
	}
	return nil, fault.New(fault.Usage, "a model is a folder or an ONNX file, but this is another file").In(dir).
		Hinting("give the folder that holds the file")
}

// newFolder is a folder of which nothing was read yet, and which may not be there.
func newFolder(dir string) *folder {
	return &folder{dir: dir, read: map[string][]byte{}, stats: map[string]fs.FileInfo{}}
}

// folderOf is the model folder of an ONNX file: the nearest with the file that every
// model folder has. Variants lie in onnx/ in it, and the modules of a
// pipeline may have folders of their own.
func folderOf(file string) (*folder, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, fault.Of(err)
	}
	for _, sign := range []string{"modules.json", "config.json"} {
		up := file
		for range 3 {
			up = filepath.Dir(up)
			f := newFolder(up)
			if f.find("", sign) == "" {
				continue
			}
			if f.asked, err = filepath.Rel(up, file); err != nil {
				return nil, fault.Of(err)
			}
			return f, nil
		}
	}
	return nil, fault.New(fault.ModelRefused, "neither the folder of the file nor the two above it have a config.json").In(file).
		Hinting("put the ONNX file into the model's folder, or into onnx/ in it")
}

// path is where a file of the folder lies.
func (f *folder) path(rel string) string { return filepath.Join(f.dir, rel) }

// find returns the first of names that is a file in the subfolder sub, relative
// to the folder, or "".
func (f *folder) find(sub string, names ...string) string {
	for _, name := range names {
		rel := filepath.Join(sub, filepath.FromSlash(name))
		if st, err := os.Stat(f.path(rel)); err == nil && st.Mode().IsRegular() {
			return rel
		}
	}
	return ""
}

// bytes reads a JSON file of the folder whole; nil and no error where it is absent.
func (f *folder) bytes(rel string) ([]byte, error) {
	if b, ok := f.read[rel]; ok {
		return b, nil
	}
	file, err := os.Open(f.path(rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Of(err)
	}
	defer file.Close()
	if f.stats[rel], err = file.Stat(); err != nil {
		return nil, fault.Of(err)
	}
	if f.stats[rel].IsDir() {
		return nil, f.refuse(rel, "it is a folder where a file should be")
	}
	b, err := io.ReadAll(io.LimitReader(file, maxJSON+1))
	if err != nil {
		return nil, fault.Of(err)
	}
	if len(b) > maxJSON {
		return nil, f.refuse(rel, "the file has more than %d MB", maxJSON>>20)
	}
	f.read[rel] = b
	return b, nil
}

// json decodes a file of the folder into v and reports whether the file is there.
func (f *folder) json(rel string, v any) (bool, error) {
	b, err := f.bytes(rel)
	if b == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), v); err != nil {
		return false, f.refuse(rel, "it is not the JSON that such a file holds: %v", err).
			Hinting("fetch the model folder again: the file is damaged or is not what its name says")
	}
	return true, nil
}

// refuse is a refusal because of one file.
func (f *folder) refuse(rel, format string, args ...any) *fault.Error {
	return fault.New(fault.ModelRefused, format, args...).In(f.path(rel)).
		Hinting("take a model folder of a supported kind, or fetch this one again if it should be one")
}

// noWeights says what is there in place of weights that can be read, in the
// subfolder sub of what is called whose.
func (f *folder) noWeights(sub, whose string) error {
	e := fault.New(fault.ModelRefused, "%s holds no weights that can be read, such as model.safetensors", whose).In(f.path(sub))
	for _, glob := range []string{"*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.h5", "*.msgpack", "*.gguf"} {
		found, _ := filepath.Glob(f.path(filepath.Join(sub, glob)))
		if len(found) > 0 {
			sort.Strings(found)
			e.Message = "the weights are only there as " + filepath.Base(found[0]) + ", which localembed does not read"
			if strings.HasSuffix(glob, ".bin") || strings.HasPrefix(glob, "*.p") {
				e.Message += " because such a file can run code when it is opened"
			}
			break
		}
	}
	return e.Hinting("take a version of the model with model.safetensors or an ONNX file, or convert it with the tools of its publisher")
}
