package models

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
	"localembed/models/safetensors"
)

// Names of weights: one file, or the index of several.
const (
	safetensorsFile  = "model.safetensors"
	safetensorsIndex = "model.safetensors.index.json"
)

// weightFiles are the safetensors files of a module.
type weightFiles struct {
	rel   string   // what to call them: the file, or the index of several
	files []string // relative to the folder; nil where there are none
}

// safetensors finds the weights of the module in the subfolder sub: one file, or
// several with an index. The index's own list of tensors is not needed, since
// each file has one.
func (f *folder) safetensors(sub string) (weightFiles, error) {
	if rel := f.find(sub, safetensorsFile); rel != "" {
		return weightFiles{rel, []string{rel}}, nil
	}
	rel := filepath.Join(sub, safetensorsIndex)
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	there, err := f.json(rel, &index)
	if err != nil || !there {
		return weightFiles{}, err
	}
	w := weightFiles{rel: rel}
	for _, name := range index.Map {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return w, f.refuse(rel, "the file %.100q leads out of the folder", name)
		}
		if file := filepath.Join(sub, filepath.FromSlash(name)); !slices.Contains(w.files, file) {
			w.files = append(w.files, file)
		}
		if len(w.files) > maxShards {
			return w, f.refuse(rel, "it names more than %d files", maxShards)
		}
	}
	if w.files == nil {
		return w, f.refuse(rel, "it names no file in weight_map")
	}
	sort.Strings(w.files)
	return w, nil
}

// maxShards is more than any model has.
const maxShards = 1000

// tensors are the weights of a module by the names that the architecture gives
// them.
type tensors struct {
	folder  *folder
	files   weightFiles
	dir     string            // the folder where the files really lie: a hub's cache
	all     map[string]placed // holds links, and ONNX Runtime follows none out of a folder
	prefix  string            // in front of each name in the files
	disk    int64             // bytes of all tensors in the files
	memory  int64             // bytes that the wanted ones take in fp32, as often as they are wanted
	kinds   map[string]bool   // types of the wanted ones
	wanted  map[string]bool   // names of the wanted ones
	refused error             // of the first want that was not met
}

// placed is a tensor and its file.
type placed struct {
	safetensors.Tensor
	rel  string // the file within the folder
	name string // the real file, in the real folder
}

// types of weights that are used, in fp32 once they are loaded.
var weightTypes = map[string]onnxpb.TensorProto_DataType{
	"F32": onnxpb.TensorProto_FLOAT, "F16": onnxpb.TensorProto_FLOAT16,
	"BF16": onnxpb.TensorProto_BFLOAT16, "F64": onnxpb.TensorProto_DOUBLE,
}

// tensors reads the headers of weights. Names may have the architecture's usual prefix;
// the tensor known tells.
func (f *folder) tensors(w weightFiles, known, usual string) (*tensors, error) {
	t := &tensors{folder: f, files: w, all: map[string]placed{}, kinds: map[string]bool{}, wanted: map[string]bool{}}
	for _, rel := range w.files {
		if err := t.read(rel); err != nil {
			return nil, err
		}
	}
	var prefixes []string
	for name := range t.all {
		if p, ok := strings.CutSuffix(name, known); ok && (p == "" || strings.HasSuffix(p, ".")) {
			prefixes = append(prefixes, p)
		}
	}
	sort.Strings(prefixes)
	switch {
	case len(prefixes) == 0:
		return nil, f.refuse(w.rel, "the tensor %q is missing", known).
			Hinting("take the weights that belong to config.json")
	case usual != "" && slices.Contains(prefixes, "") && slices.Contains(prefixes, usual):
		return nil, f.refuse(w.rel, "it holds several models: %q is there with the prefixes %.200q", known, prefixes).
			Hinting("save the encoder alone")
	case slices.Contains(prefixes, usual):
		t.prefix = usual
	case !slices.Contains(prefixes, ""):
		return nil, f.refuse(w.rel, "%q is there with the prefixes %.200q, but the architecture's own is %q: transformers would not load it", known, prefixes, usual).
			Hinting("save the encoder alone")
	}
	return t, nil
}

// read adds the tensors of a file.
func (t *tensors) read(rel string) error {
	f := t.folder
	all, err := safetensors.Open(f.path(rel))
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && rel != t.files.rel:
		return f.refuse(t.files.rel, "the weights lie in %q too, which is missing", filepath.Base(rel)).
			Hinting("fetch that file too, into the same folder")
	case errors.As(err, &path):
		return fault.Of(err) // the disk's fault, not the file's
	case err != nil:
		return f.refuse(rel, "%v", err).
			Hinting("fetch the file again: it is damaged or is no safetensors file")
	}
	dir, name, err := realPath(f.path(rel))
	if err != nil {
		return fault.Of(err)
	}
	if t.dir != "" && t.dir != dir {
		return f.refuse(t.files.rel, "the weights lie in several folders, which is not supported").
			Hinting("put all files of the weights into one folder")
	}
	t.dir = dir
	for k, x := range all {
		if before, twice := t.all[k]; twice {
			return f.refuse(t.files.rel, "the tensor %.100q is in %q and in %q", k, before.rel, rel)
		}
		t.all[k] = placed{x, rel, name}
		t.disk += x.Length
	}
	return nil
}

// realPath is the absolute folder and the name of a file, links resolved.
func realPath(path string) (dir, name string, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	return filepath.Dir(path), filepath.Base(path), nil
}

// part takes a name apart that has "#i/n" in it: the i-th of n equal parts of a
// tensor's rows, from 0. Checkpoints that keep queries, keys and values in one
// tensor have them one after another, so that each is a tensor of its own.
func part(name string) (whole string, i, n int64) {
	from := strings.IndexByte(name, '#')
	if from < 0 {
		return name, 0, 1
	}
	p := name[from:]
	return name[:from] + p[len("#i/n"):], int64(p[1] - '0'), int64(p[3] - '0')
}

// at finds a tensor or a part of one. Old checkpoints call a norm's weights gamma
// and beta.
func (t *tensors) at(name string) (placed, bool) {
	name, i, n := part(name)
	x, ok := t.whole(name)
	if ok && n > 1 && len(x.Shape) > 0 && x.Shape[0]%n == 0 {
		x.Shape = slices.Clone(x.Shape)
		x.Shape[0] /= n
		x.Length /= n
		x.Offset += i * x.Length
	}
	return x, ok
}

func (t *tensors) whole(name string) (placed, bool) {
	x, ok := t.all[t.prefix+name]
	if !ok {
		old := strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(name)
		x, ok = t.all[t.prefix+old]
	}
	return x, ok
}

// has reports whether a tensor is there.
func (t *tensors) has(name string) bool {
	_, ok := t.at(name)
	return ok
}

// want refuses a tensor that is absent or has another type or shape.
func (t *tensors) want(name string, shape ...int64) {
	if t.refused != nil {
		return
	}
	x, ok := t.at(name)
	t.wanted[name] = true
	name, _, parts := part(name)
	if parts > 1 && ok {
		// A refusal shows the whole tensor.
		x, _ = t.whole(name)
		shape = slices.Clone(shape)
		shape[0] *= parts
	}
	switch {
	case !ok:
		t.refused = t.folder.refuse(t.files.rel, "the tensor %q is missing", name).
			Hinting("take the weights that belong to config.json")
	case weightTypes[x.DType] == onnxpb.TensorProto_UNDEFINED:
		t.refused = t.folder.refuse(x.rel, "the tensor %q is %s: only weights in fp32, fp16 or bf16 are supported", name, x.DType).
			Hinting("take the fp32 weights of the model, or convert them")
	case !slices.Equal(x.Shape, shape):
		t.refused = t.folder.refuse(x.rel, "the tensor %q has the shape %v where config.json asks for %v", name, x.Shape, shape).
			Hinting("take the weights that belong to config.json")
	default:
		t.kinds[x.DType] = true
		size := int64(4)
		for _, d := range shape {
			size *= d
		}
		t.memory += size / parts
	}
}

// wantLinear wants a linear layer; bare is one without a bias, which is passed
// over if it is there.
func (t *tensors) wantLinear(name string, out, in int64, bare bool) {
	t.want(name+".weight", out, in)
	if !bare {
		t.want(name+".bias", out)
	}
}

// wantNorm wants a norm, unless its name is empty.
func (t *tensors) wantNorm(name string, size int64, bare bool) {
	if name == "" {
		return
	}
	t.want(name+".weight", size)
	if !bare {
		t.want(name+".bias", size)
	}
}

// initializer is a tensor as external data of a graph: the bytes stay where
// they are, and ONNX Runtime maps them.
func (t *tensors) initializer(name string) *onnxpb.TensorProto {
	x, _ := t.at(name)
	entry := func(k, v string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(k), Value: proto.String(v)}
	}
	return &onnxpb.TensorProto{
		Name:         proto.String(name),
		DataType:     proto.Int32(int32(weightTypes[x.DType])),
		Dims:         x.Shape,
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{
			entry("location", x.name), entry("offset", itoa(x.Offset)), entry("length", itoa(x.Length)),
		},
	}
}

// inline is a tensor whose bytes are copied into the graph under a name of its
// own: for small weights that lie in another folder than the large ones.
func (t *tensors) inline(n *nodes, name string) (string, error) {
	x, _ := t.at(name)
	file, err := os.Open(t.folder.path(x.rel))
	if err != nil {
		return "", fault.Of(err)
	}
	defer file.Close()
	raw := make([]byte, x.Length)
	if _, err := io.ReadFull(io.NewSectionReader(file, x.Offset, x.Length), raw); err != nil {
		return "", fault.Of(err)
	}
	v := n.tensor(&onnxpb.TensorProto{
		Name: proto.String(n.fresh()), DataType: proto.Int32(int32(weightTypes[x.DType])), Dims: x.Shape, RawData: raw,
	})
	if x.DType != "F32" {
		v = n.float32(v)
	}
	return v, nil
}
