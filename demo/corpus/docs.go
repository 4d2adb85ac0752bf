package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// document is one row of the corpus.
type document struct {
	ID   string `parquet:"id"`
	Text string `parquet:"text"`
}

// standardLibrary reads the comments of every exported symbol below src, a
// GOROOT's src folder. Commands, vendored and internal packages are left out:
// nobody looks for those.
func standardLibrary(src string) ([]document, error) {
	var docs []document
	err := filepath.WalkDir(src, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		switch entry.Name() {
		case "cmd", "internal", "testdata", "vendor":
			return fs.SkipDir
		}
		path, err := filepath.Rel(src, dir)
		if err != nil {
			return err
		}
		docs, err = appendPackage(docs, dir, filepath.ToSlash(path))
		return err
	})
	if err == nil && len(docs) == 0 {
		err = errors.New("no Go source in it")
	}
	if err != nil {
		return nil, fmt.Errorf("read the standard library's source in %q: %w (it comes with the Go toolchain)", src, err)
	}
	return docs, nil
}

// appendPackage adds the symbols of the package in dir. Build constraints are
// resolved for one fixed platform: so a symbol is declared once, its id is
// unique, and the corpus does not depend on the machine.
func appendPackage(docs []document, dir, path string) ([]document, error) {
	platform := build.Default
	platform.GOOS, platform.GOARCH, platform.CgoEnabled = "linux", "amd64", true
	listed, err := platform.ImportDir(dir, 0)
	if noGo := (*build.NoGoError)(nil); errors.As(err, &noGo) {
		return docs, nil
	}
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(listed.GoFiles, listed.CgoFiles...) {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, path)
	if err != nil {
		return nil, err
	}

	add := func(id, text string) {
		if text = strings.TrimSpace(text); text != "" {
			docs = append(docs, document{ID: id, Text: text})
		}
	}
	values := func(groups []*doc.Value) {
		for _, group := range groups {
			add(path+"."+group.Names[0], group.Doc)
		}
	}
	funcs := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			add(prefix+"."+f.Name, f.Doc)
		}
	}
	add(path, pkg.Doc)
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(path, pkg.Funcs)
	for _, t := range pkg.Types {
		add(path+"."+t.Name, t.Doc)
		values(t.Consts)
		values(t.Vars)
		funcs(path, t.Funcs)
		funcs(path+"."+t.Name, t.Methods)
	}
	return docs, nil
}
