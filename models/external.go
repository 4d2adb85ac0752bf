package models

import (
	"errors"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// external checks the files that weights lie in: inside the folder of the model file,
// also where they are links, or beside the real model file, as a hub's cache has them,
// and long enough.
func (x *onnxFile) external(m *onnxpb.ModelProto) error {
	for _, t := range tensorsOf(m) {
		if t.GetDataLocation() != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		var location string
		var offset int64
		length := byteSize(t) // of a tensor that does not say it
		for _, e := range t.GetExternalData() {
			var err error
			switch e.GetKey() {
			case "location":
				location = e.GetValue()
			case "offset":
				offset, err = strconv.ParseInt(e.GetValue(), 10, 64)
			case "length":
				length, err = strconv.ParseInt(e.GetValue(), 10, 64)
			}
			if err != nil || offset < 0 || length < 0 {
				return x.folder.refuse(x.rel, "the tensor %q has the %s %q in its external data", t.GetName(), e.GetKey(), e.GetValue())
			}
		}
		if !filepath.IsLocal(filepath.FromSlash(location)) {
			return x.folder.refuse(x.rel, "the tensor %q lies in %q, which leads out of the model's folder", t.GetName(), location)
		}
		rel := x.dataFile(location)
		st, err := os.Stat(x.folder.path(rel))
		if errors.Is(err, fs.ErrNotExist) {
			return x.folder.refuse(x.rel, "its weights lie in %q, which is missing", location).
				Hinting("fetch that file too, into the same folder")
		}
		if err != nil {
			return fault.Of(err)
		}
		if !st.Mode().IsRegular() || offset > st.Size() || length > st.Size()-offset {
			return x.folder.refuse(rel, "the tensor %q needs %d bytes from byte %d on, but the file has %d", t.GetName(), length, offset, st.Size()).
				Hinting("fetch the file again: it is cut off")
		}
		if slices.Contains(x.files, rel) {
			continue
		}
		dir, _, err := realPath(x.folder.path(rel))
		if err != nil {
			return fault.Of(err)
		}
		if err := x.inside(dir, location); err != nil {
			return err
		}
		if x.dir != "" && x.dir != dir {
			return x.folder.refuse(x.rel, "its weights lie in several folders, which is not supported").
				Hinting("save the model with all external data in one file")
		}
		x.dir = dir
		x.files = append(x.files, rel)
		x.bytes += st.Size()
	}
	return nil
}

// externalFiles are the slash-separated paths of the files that an ONNX file's weights lie
// in. What is wrong with the file is for Open to say.
func (f *folder) externalFiles(rel string) (files []string) {
	x := &onnxFile{folder: f, rel: rel}
	var m onnxpb.ModelProto
	if raw, err := x.read(); err != nil || proto.Unmarshal(raw, &m) != nil {
		return nil
	}
	for _, t := range tensorsOf(&m) {
		for _, e := range t.GetExternalData() {
			if file := path.Join(path.Dir(rel), e.GetValue()); e.GetKey() == "location" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// inside refuses data that really lies in dir where that is neither in the model's folder
// nor where the model file itself really lies.
func (x *onnxFile) inside(dir, location string) error {
	above, name, err := realPath(x.folder.dir)
	if err != nil {
		return fault.Of(err)
	}
	beside, _, err := realPath(x.folder.path(x.rel))
	if err != nil {
		return fault.Of(err)
	}
	if rel, err := filepath.Rel(filepath.Join(above, name), dir); dir == beside || err == nil && filepath.IsLocal(rel) {
		return nil
	}
	return x.folder.refuse(x.rel, "its weights lie in %q, which is a link to a file in %s, out of the model's folder", location, dir).
		Hinting("copy that file into the folder if it belongs to the model")
}

// byteSize is what a tensor takes by its shape, 0 where it is not known.
func byteSize(t *onnxpb.TensorProto) int64 {
	size := int64(0)
	switch onnxpb.TensorProto_DataType(t.GetDataType()) {
	case onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_INT64, onnxpb.TensorProto_UINT64:
		size = 8
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32, onnxpb.TensorProto_UINT32:
		size = 4
	case onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_INT16, onnxpb.TensorProto_UINT16:
		size = 2
	case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_BOOL:
		size = 1
	}
	for _, d := range t.GetDims() {
		if d < 0 || d > 0 && size > math.MaxInt64/d {
			return math.MaxInt64 // more than any file has
		}
		size *= d
	}
	return size
}

// dataFile is a file of external data, relative to the folder.
func (x *onnxFile) dataFile(location string) string {
	return filepath.Join(filepath.Dir(x.rel), filepath.FromSlash(location))
}

// linked rewrites each location to the name of the real file in x.dir. A hub's
// cache holds links to files with other names in another folder, and ONNX
// Runtime follows none out of a folder.
func (x *onnxFile) linked(raw []byte) ([]byte, error) {
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	for _, t := range tensorsOf(&m) {
		for _, e := range t.GetExternalData() {
			if e.GetKey() != "location" || t.GetDataLocation() != onnxpb.TensorProto_EXTERNAL {
				continue
			}
			_, name, err := realPath(x.folder.path(x.dataFile(e.GetValue())))
			if err != nil {
				return nil, err
			}
			e.Value = &name
		}
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&m)
}

// nodesOf is every node of a model: those of inner graphs and of functions included.
func nodesOf(m *onnxpb.ModelProto) iter.Seq[*onnxpb.NodeProto] {
	return func(yield func(*onnxpb.NodeProto) bool) {
		var walk func(nodes []*onnxpb.NodeProto) bool
		walk = func(nodes []*onnxpb.NodeProto) bool {
			for _, n := range nodes {
				if !yield(n) {
					return false
				}
				for _, a := range n.GetAttribute() {
					for _, inner := range append(slices.Clone(a.GetGraphs()), a.GetG()) {
						if !walk(inner.GetNode()) {
							return false
						}
					}
				}
			}
			return true
		}
		for _, f := range m.GetFunctions() {
			if !walk(f.GetNode()) {
				return
			}
		}
		walk(m.GetGraph().GetNode())
	}
}

// tensorsOf is every tensor of a model, in its graph, inner graphs and functions.
func tensorsOf(m *onnxpb.ModelProto) []*onnxpb.TensorProto {
	var out []*onnxpb.TensorProto
	weights := func(g *onnxpb.GraphProto) {
		out = append(out, g.GetInitializer()...)
		for _, s := range g.GetSparseInitializer() {
			out = append(out, s.GetValues(), s.GetIndices())
		}
	}
	weights(m.GetGraph())
	for n := range nodesOf(m) {
		for _, a := range n.GetAttribute() {
			if a.GetT() != nil {
				out = append(out, a.GetT())
			}
			out = append(out, a.GetTensors()...)
			for _, inner := range append(slices.Clone(a.GetGraphs()), a.GetG()) {
				weights(inner)
			}
		}
	}
	return out
}
