package models

import (
	"path"
	"slices"
)

// Wanted says which files of a model Open would read, for a folder dir that may
// still be empty: names are all files that the model has, as slash-separated paths.
// What is wanted depends on what the first files say, so that it is asked again once
// those are in dir; when all wanted files are there, the folder is whole. Weights
// are wanted last: a folder that has them has everything else. Pickles and other
// formats are never wanted, and an ONNX file only where no graph can be built or
// onnx asks for it.
func Wanted(dir string, names []string, onnx bool) []string {
	f := newFolder(dir)
	var want []string
	take := func(sub string, files ...string) (all bool) {
		all = true
		for _, file := range files {
			if name := path.Join(sub, file); slices.Contains(names, name) {
				want = append(want, name)
				all = all && f.find("", name) != ""
			}
		}
		return all
	}
	if !take("", "modules.json") {
		return want
	}
	subs := f.moduleFolders()
	small := take("", promptsFile)
	for _, sub := range subs {
		files := append([]string{"config.json", "tokenizer.json", "tokenizer_config.json", specialTokensFile, addedTokensFile, "adapter_config.json"}, sbertFiles...)
		small = take(sub, files...) && small
	}
	if !small {
		return want
	}
	for i, sub := range subs {
		if i == 0 && f.wantsONNX(sub, names, onnx) {
			f.takeONNX(sub, names, take)
			continue
		}
		if slices.Contains(names, path.Join(sub, safetensorsFile)) {
			take(sub, safetensorsFile)
		} else if take(sub, safetensorsIndex) {
			if w, err := f.safetensors(sub); err == nil { // else Open says what is wrong
				for _, file := range w.files {
					take("", file)
				}
			}
		}
	}
	return want
}

// moduleFolders are the folders that modules.json names, that of the Transformer
// first; without one, the folder itself and its pooling. What is wrong with the file
// is for Open to say.
func (f *folder) moduleFolders() []string {
	var mods []struct {
		Path string `json:"path"`
	}
	there, err := f.json("modules.json", &mods)
	if err != nil || !there || len(mods) == 0 || len(mods) > maxLayers {
		return []string{"", "1_Pooling"}
	}
	subs := make([]string, len(mods))
	for i, mod := range mods {
		subs[i] = path.Clean("/" + mod.Path)[1:]
	}
	return subs
}

// wantsONNX decides as choose does.
func (f *folder) wantsONNX(sub string, names []string, onnx bool) bool {
	there := slices.ContainsFunc(onnxFiles, func(file string) bool { return slices.Contains(names, path.Join(sub, file)) })
	if !there || onnx {
		return there
	}
	cfg, err := f.config(sub)
	known := err == nil && architectures[cfg.ModelType] != nil
	return !known || !slices.Contains(names, path.Join(sub, safetensorsFile)) && !slices.Contains(names, path.Join(sub, safetensorsIndex))
}

// takeONNX takes the ONNX file that choose would and, once it is there, the files of
// external data that it names.
func (f *folder) takeONNX(sub string, names []string, take func(string, ...string) bool) {
	for _, file := range onnxFiles {
		name := path.Join(sub, file)
		if !slices.Contains(names, name) {
			continue
		}
		if take("", name) {
			for _, location := range f.externalFiles(name) {
				take("", location)
			}
		}
		return
	}
}
