package models

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"localembed/internal/fault"
	"localembed/models/onnxpb"
)

// external checks the files that weights lie in: inside the folder of the
// model file, and long enough.
func (x *onnxFile) external(m *onnxpb.ModelProto) error {
	for _, t := range tensorsOf(m.GetGraph()) {
		if t.GetDataLocation() != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		var location string
		var offset, length int64
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
	for _, t := range tensorsOf(m.GetGraph()) {
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

// tensorsOf collects every tensor of a graph, those of inner graphs included.
func tensorsOf(g *onnxpb.GraphProto) []*onnxpb.TensorProto {
	out := slices.Clone(g.GetInitializer())
	for _, s := range g.GetSparseInitializer() {
		out = append(out, s.GetValues(), s.GetIndices())
	}
	for _, n := range g.GetNode() {
		for _, a := range n.GetAttribute() {
			if a.GetT() != nil {
				out = append(out, a.GetT())
			}
			out = append(out, a.GetTensors()...)
			for _, inner := range append(slices.Clone(a.GetGraphs()), a.GetG()) {
				if inner != nil {
					out = append(out, tensorsOf(inner)...)
				}
			}
		}
	}
	return out
}
