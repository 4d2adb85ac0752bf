package corpus

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"localembed/internal/fault"
)

const extension = ".parquet"

// listing collects the files of a corpus in corpus order.
type listing struct {
	out   string            // real path of the output folder, "" if it is not there yet
	seen  map[string]string // real place of a file → path it was found under
	files []File
}

// list finds the files that the arguments name: arguments as given, inside a
// folder or glob bytewise by relative path.
func list(args []string, outDir string) ([]File, error) {
	l := listing{seen: map[string]string{}}
	if outDir != "" {
		if real, err := filepath.EvalSymlinks(outDir); err == nil {
			if l.out, err = filepath.Abs(real); err != nil {
				return nil, fault.Of(err)
			}
		}
	}
	for i, arg := range args {
		found, err := l.argument(i, arg)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(found, func(a, b File) int { return strings.Compare(a.Rel, b.Rel) })
		l.files = append(l.files, found...)
	}
	if err := l.refuseTwice(); err != nil {
		return nil, err
	}
	nameFiles(l.files)
	return l.files, nil
}

func (l *listing) argument(arg int, path string) ([]File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		files, err := l.folder(arg, path, "", nil)
		if err == nil && len(files) == 0 {
			err = fault.New(fault.NoSuchFile, "the folder holds no file whose name ends in %s", extension).In(path).
				Hinting("name a folder that does; files and folders whose names start with . or _ do not count")
		}
		return files, err
	case err == nil:
		return []File{{Path: path, Rel: filepath.Base(path), Arg: arg}}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Of(err)
	case isGlob(path):
		return l.glob(arg, path)
	default:
		return nil, fault.New(fault.NoSuchFile, "there is no such file or folder").In(path).
			Hinting("check the path; it is read relative to the current folder")
	}
}

// folder lists a folder and what is below it. above holds the folders around
// it, to notice a link that leads back up.
func (l *listing) folder(arg int, path, rel string, above []fs.FileInfo) ([]File, error) {
	if l.isOut(path) {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Of(err)
	}
	for _, a := range above {
		if os.SameFile(a, info) {
			return nil, fault.New(fault.Usage, "a link leads back to a folder above itself").In(path).
				Hinting("remove the link, or name the folders below it one by one")
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault.Of(err)
	}
	above = append(slices.Clone(above), info)
	var files []File
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		p, r := filepath.Join(path, e.Name()), filepath.ToSlash(filepath.Join(rel, e.Name()))
		found, err := l.entry(arg, p, r, above)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// entry is a file or a folder found in a folder or by a glob.
func (l *listing) entry(arg int, path, rel string, above []fs.FileInfo) ([]File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil && strings.HasSuffix(path, extension):
		return nil, fault.Of(err)
	case err != nil:
		return nil, nil // a dangling link that would not be read anyway
	case info.IsDir():
		return l.folder(arg, path, rel, above)
	case strings.HasSuffix(path, extension):
		return []File{{Path: path, Rel: rel, Arg: arg}}, nil
	default:
		return nil, nil
	}
}

func (l *listing) glob(arg int, pattern string) ([]File, error) {
	if strings.Contains(pattern, "**") {
		return nil, fault.New(fault.Usage, "** is not read in a pattern").In(pattern).
			Hinting("name the folder: it is read with all folders below it")
	}
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fault.New(fault.Usage, "the pattern is not well formed").In(pattern).Because(err).
			Hinting("close every [ and escape a literal one with a backslash")
	}
	base := globBase(pattern)
	var files []File
	for _, m := range matches {
		rel, err := filepath.Rel(base, m)
		if err != nil {
			return nil, fault.New(fault.Usage, "the pattern's folder cannot be told").In(pattern).Because(err)
		}
		if slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), hidden) {
			continue
		}
		found, err := l.entry(arg, m, filepath.ToSlash(rel), nil)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fault.New(fault.NoSuchFile, "the pattern matches no file whose name ends in %s", extension).In(pattern).
			Hinting("try it with ls; names that start with . or _ do not count")
	}
	return files, nil
}

func isGlob(path string) bool { return strings.ContainsAny(path, "*?[") }

// globBase is the folder in front of the pattern's first special character.
func globBase(pattern string) string {
	base := filepath.Clean(pattern)
	for isGlob(base) {
		base = filepath.Dir(base)
	}
	return base
}

func hidden(name string) bool {
	return name != "." && name != ".." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"))
}

func (l *listing) isOut(path string) bool {
	if l.out == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	real, err = filepath.Abs(real)
	return err == nil && real == l.out
}

// refuseTwice refuses a file that two arguments name: its rows would be in the
// output twice. Links to files are not followed: a hub's cache links equal
// files to one blob, and each stands for rows of its own.
func (l *listing) refuseTwice() error {
	for _, f := range l.files {
		dir, err := filepath.EvalSymlinks(filepath.Dir(f.Path))
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return fault.Of(err)
		}
		place := filepath.Join(dir, filepath.Base(f.Path))
		if first, ok := l.seen[place]; ok {
			return fault.New(fault.Usage, "the file is named twice, also as %s", first).In(f.Path).
				Hinting("name each file once; a folder already names all files below it")
		}
		l.seen[place] = f.Path
	}
	return nil
}

// nameFiles sets Name: the relative path, with the argument's number in front
// where two would be equal.
func nameFiles(files []File) {
	for i := range files {
		files[i].Name = files[i].Rel
	}
	for _, i := range equalNames(files) {
		files[i].Name = numbered(files[i])
	}
	if len(equalNames(files)) > 0 { // a numbered name is spelled like another file's own
		for i := range files {
			files[i].Name = numbered(files[i])
		}
	}
}

func numbered(f File) string { return strconv.Itoa(f.Arg+1) + "/" + f.Rel }

// equalNames are the places of the files whose name another one has.
func equalNames(files []File) []int {
	count := map[string]int{}
	for _, f := range files {
		count[f.Name]++
	}
	var places []int
	for i, f := range files {
		if count[f.Name] > 1 {
			places = append(places, i)
		}
	}
	return places
}
