package models

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
	"localembed/models/safetensors"
)

// tensors are the weights of one safetensors file by the names that the
// architecture gives them.
type tensors struct {
	folder *folder
	rel    string // the file within the folder
	dir    string // the folder and name where the file really lies: a hub's
	name   string // cache holds links, and ONNX Runtime follows none out of a folder
	all    map[string]safetensors.Tensor
	prefix string // in front of each name in the file
	bytes  int64
}

// tensors reads the header of a weights file. The prefix is the first of
// prefixes with which the file holds the tensor known.
func (f *folder) tensors(rel, known string, prefixes ...string) (*tensors, error) {
	all, err := safetensors.Open(f.path(rel))
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, fault.Of(err) // the disk's fault, not the file's
	}
	if err != nil {
		return nil, f.refuse(rel, "%v", err).
			Hinting("fetch the file again: it is damaged or is no safetensors file")
	}
	dir, name, err := realPath(f.path(rel))
	if err != nil {
		return nil, fault.Of(err)
	}
	t := &tensors{folder: f, rel: rel, dir: dir, name: name, all: all}
	for _, x := range all {
		t.bytes += x.Length
	}
	for _, p := range prefixes {
		if _, ok := all[p+known]; ok {
			t.prefix = p
			return t, nil
		}
	}
	return nil, f.refuse(rel, "the tensor %q is missing", known).
		Hinting("take the weights that belong to config.json")
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

// check refuses a tensor that is absent or not fp32 of the wanted shape.
func (t *tensors) check(name string, shape ...int64) error {
	x, ok := t.all[t.prefix+name]
	switch {
	case !ok:
		return t.folder.refuse(t.rel, "the tensor %q is missing", name).
			Hinting("take the weights that belong to config.json")
	case x.DType != "F32":
		return t.folder.refuse(t.rel, "the tensor %q is %s: only fp32 weights (F32) are supported", name, x.DType).
			Hinting("take the fp32 weights of the model, or convert them")
	case !slices.Equal(x.Shape, shape):
		return t.folder.refuse(t.rel, "the tensor %q has the shape %v where config.json asks for %v", name, x.Shape, shape).
			Hinting("take the weights that belong to config.json")
	}
	return nil
}

// has reports whether the file holds a tensor.
func (t *tensors) has(name string) bool {
	_, ok := t.all[t.prefix+name]
	return ok
}

// initializer is a tensor as external data of a graph: the bytes stay where
// they are, and ONNX Runtime maps them.
func (t *tensors) initializer(name string) *onnxpb.TensorProto {
	x := t.all[t.prefix+name]
	entry := func(k, v string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(k), Value: proto.String(v)}
	}
	return &onnxpb.TensorProto{
		Name:         proto.String(name),
		DataType:     proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
		Dims:         x.Shape,
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{
			entry("location", t.name), entry("offset", itoa(x.Offset)), entry("length", itoa(x.Length)),
		},
	}
}
