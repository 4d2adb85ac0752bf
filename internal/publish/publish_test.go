package publish

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// large is more than the writer buffers, so that writing itself can fail.
var large = strings.Repeat("a new sentence. ", 70_000)

func write(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func read(t *testing.T, fs vfs.FS, path string) string {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func folder(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	if err := MkdirAll(fs, dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAFailureLeavesTheOldFile(t *testing.T) {
	for i := int32(0); ; i++ {
		mem := vfs.NewMem()
		folder(t, mem, "/out")
		if err := File(mem, "/out/file", write("old")); err != nil {
			t.Fatal(err)
		}
		injector := errorfs.OnIndex(i)
		err := File(errorfs.Wrap(mem, injector), "/out/file", write(large))
		names, listErr := mem.List("/out")
		if listErr != nil {
			t.Fatal(listErr)
		}
		if !slices.Equal(names, []string{"file"}) {
			t.Errorf("operation %d failed, and the folder has %v", i, names)
		}
		got := read(t, mem, "/out/file")
		if err == nil {
			if got != large {
				t.Errorf("no error, and the file has %d bytes", len(got))
			}
			if i < 6 {
				t.Errorf("only %d operations can fail", i)
			}
			break
		}
		// Only the folder's sync comes after the renaming.
		if got != "old" && got != large {
			t.Errorf("operation %d failed, and the file has %d bytes", i, len(got))
		}
		if strings.Contains(err.Error(), "rename") && got != "old" {
			t.Error("the renaming failed, and the old file is gone")
		}
	}
}

func TestAWriterThatFailsLeavesTheOldFile(t *testing.T) {
	mem := vfs.NewMem()
	folder(t, mem, "/out")
	if err := File(mem, "/out/file", write("old")); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("no more")
	err := File(mem, "/out/file", func(w io.Writer) error {
		_, _ = io.WriteString(w, large)
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("error is %v", err)
	}
	if names, err := mem.List("/out"); err != nil || !slices.Equal(names, []string{"file"}) || read(t, mem, "/out/file") != "old" {
		t.Errorf("the folder has %v (%v)", names, err)
	}
}

// Whatever part of the unsynced data a machine keeps when it dies, a published file
// is there, whole, in folders that were just made; and one that is being published
// over it is there whole or not at all.
func TestAPublishedFileSurvivesACrash(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for i := range 36 {
		mem := vfs.NewCrashableMem()
		folder(t, mem, "/a/b/out")
		if err := File(mem, "/a/b/out/file", write("old")); err != nil {
			t.Fatal(err)
		}
		// The machine dies at the i-th operation of the next publishing.
		var clone *vfs.MemFS
		at := 0
		crash := func() {
			clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
		}
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if at++; at == i%12+1 {
				crash()
			}
			return nil
		}))
		if err := File(fs, "/a/b/out/file", write(large)); err != nil {
			t.Fatal(err)
		}
		done := clone == nil
		if done {
			crash()
		}
		got := read(t, clone, "/a/b/out/file")
		if done && got != large || got != large && got != "old" {
			t.Errorf("a crash at operation %d of %d leaves %d bytes", i%12+1, at, len(got))
		}
		if err := Remove(clone, "/a/b/out/file"); err != nil {
			t.Fatal(err)
		}
		clone = clone.CrashClone(vfs.CrashCloneCfg{})
		if _, err := clone.Stat("/a/b/out/file"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a removed file is back: %v", err)
		}
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		publish func(vfs.FS, string, func(io.Writer) error) error
		private bool
	}{"shard": {File, false}, "text": {Private, true}} {
		path := filepath.Join(dir, name)
		for range 2 { // new, and over an old one
			if err := c.publish(vfs.Default, path, write("text")); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if private := info.Mode().Perm()&0o077 == 0; private != c.private {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestFoldersThatAreThere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, d := range []string{".", "a/b/c", "a/b/c", "a", filepath.Join(dir, "a", "x"), "/"} {
		if err := MkdirAll(vfs.Default, d, 0o755); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if info, err := os.Stat(d); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"file", "file/below"} {
		if err := MkdirAll(vfs.Default, d, 0o755); err == nil {
			t.Errorf("%s was made", d)
		}
	}
	for i := int32(0); ; i++ {
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.OnIndex(i))
		if err := MkdirAll(fs, "/x/y", 0o755); err == nil {
			if i < 5 {
				t.Errorf("only %d operations can fail", i)
			}
			break
		} else if !errors.Is(err, errorfs.ErrInjected) {
			t.Error(fmt.Errorf("operation %d: %w", i, err))
		}
	}
}
