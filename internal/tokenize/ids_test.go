package tokenize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localembed/internal/testenv"
)

func TestIDs(t *testing.T) {
	json, err := os.ReadFile(filepath.Join(testenv.Model(t), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("hello ", 2000)
	for text, want := range map[string]int{"hello world": 4, "": 2, long: 2002} {
		ids, err := IDs(json, text)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) != want || ids[0] != cls || ids[len(ids)-1] != sep {
			t.Errorf("%.20q has the ids %v, want %d from [CLS] to [SEP]", text, ids[:min(len(ids), 8)], want)
		}
	}
	got, err := IDs(json, "hello world")
	if diff := cmp.Diff([]uint32{cls, hello, world, sep}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := IDs([]byte("{}"), "hello"); err == nil {
		t.Error("a tokenizer.json without a model was taken")
	}
}
