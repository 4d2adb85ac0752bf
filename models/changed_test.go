package models

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"localembed/internal/fault"
)

func TestUnchanged(t *testing.T) {
	edit := func(t *testing.T, dir, name string, change func([]byte) []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// As a download does it: another file takes the name.
		if err := os.WriteFile(path+".new", change(b), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change  func(t *testing.T, dir string)
		changed bool
	}{
		"nothing": {func(*testing.T, string) {}, false},
		"touched": {func(t *testing.T, dir string) {
			if err := os.Chtimes(filepath.Join(dir, "model.safetensors"), time.Time{}, time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
		}, false},
		"the same content": {func(t *testing.T, dir string) {
			edit(t, dir, "config.json", func(b []byte) []byte { return b })
		}, false},
		"another file beside it": {func(t *testing.T, dir string) { put(t, dir, "README.md", "x") }, false},
		"a prompt":               {func(t *testing.T, dir string) { put(t, dir, promptsFile, `{"prompts":{"document":"d: "}}`) }, false},
		"weights": {func(t *testing.T, dir string) {
			edit(t, dir, "model.safetensors", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
		}, true},
		"weights, in place": {func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "model.safetensors"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			time.Sleep(20 * time.Millisecond) // file systems tell times in steps
			if _, err := f.WriteAt([]byte{1, 2, 3}, 5000); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the tokenizer": {func(t *testing.T, dir string) {
			edit(t, dir, "tokenizer.json", func(b []byte) []byte { return append(b, ' ') })
		}, true},
		"a file is gone": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
			put(t, dir, promptsFile, `{}`)
			m, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Unchanged(); err != nil {
				t.Fatalf("before: %v", err)
			}
			c.change(t, dir)
			for range 2 {
				err := m.Unchanged()
				if c.changed != (err != nil) || err != nil && (!fault.Is(err, fault.BadVectors) || fault.Of(err).File == "") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
