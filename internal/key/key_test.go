package key

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func recipe() Recipe {
	return Recipe{ModelDigest: strings.Repeat("ab", 32), Pooling: "mean", Normalize: true, MaxTokens: 256, Dims: 384, Precision: "fp32"}
}

// The keys of these texts stand in stores and shards that exist. Where one changes,
// nothing that was computed is found again: keys may change only with Version, and
// Version only when vectors leave promise P1's tolerance.
func TestGoldenKeys(t *testing.T) {
	prompted := recipe()
	prompted.Prompt, prompted.Normalize = "passage: ", false
	for _, c := range []struct {
		recipe Recipe
		text   string
		want   string
	}{
		{recipe(), "", "bf66df2b7d11df9f814d24f88cc62b6adc772174e04ea868b6fb8389134497fe"},
		{recipe(), "read a file line by line", "28f48840e3268222d059569b013813b6ebaaab7d197bc5e571499338a9b11204"},
		{recipe(), "caf\u00e9 \x00 \xff", "7906a4b118cc07f629150b97269dea80016d9e5deec38667b1126d2ca4b3c103"},
		{recipe(), strings.Repeat("a", 1<<16+1), "0f5fdaafef31d9535376789a4d4b92ea21bc94165aa32c3fd27ea95f490f54ee"},
		{prompted, "read a file line by line", "d83f9b21b2b32d0dd01884c68d3e71fcdffc5cb6f301704b7ccda3783e581268"},
	} {
		if got := NewHasher(c.recipe).Key([]byte(c.text)).String(); got != c.want {
			t.Errorf("the key of %.30q is %s, want %s", c.text, got, c.want)
		}
	}
	if got := hex.EncodeToString(digestOf(recipe())); got != "5646412cd8e5944da9b9ae859da4dac18cd86a6e959fddc4175e89e970bd517e" {
		t.Errorf("the recipe's digest is %s", got)
	}
}

func digestOf(r Recipe) []byte { d := r.Digest(); return d[:] }

// Every field of a recipe changes every key, a field that is added later too.
func TestEveryFieldCounts(t *testing.T) {
	base := recipe()
	key := NewHasher(base).Key([]byte("text"))
	for i := range reflect.TypeFor[Recipe]().NumField() {
		changed := base
		switch f := reflect.ValueOf(&changed).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		default:
			t.Fatalf("a field of kind %s", f.Kind())
		}
		if NewHasher(changed).Key([]byte("text")) == key || changed.Digest() == base.Digest() {
			t.Errorf("%s does not count", reflect.TypeFor[Recipe]().Field(i).Name)
		}
	}
}

// Different fields never make the same bytes, wherever one ends and the next begins.
func TestFieldsDoNotRunIntoEachOther(t *testing.T) {
	join := func(fields []string) (b []byte) {
		for _, f := range fields {
			b = AppendField(b, []byte(f))
		}
		return b
	}
	// Few letters, zeros among them, so that collisions would be found.
	fields := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a'}), 0, 12, -1), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := fields.Draw(t, "a"), fields.Draw(t, "b")
		if bytes.Equal(join(a), join(b)) != reflect.DeepEqual(append([]string{}, a...), append([]string{}, b...)) {
			t.Fatalf("%q and %q", a, b)
		}
	})
	// Text moved from one field to the next.
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(2, 20, -1).Draw(t, "text")
		at := rapid.IntRange(1, len(s)-1).Draw(t, "at")
		a, b := recipe(), recipe()
		a.Prompt, b.Prompt = "", s[:at]
		if NewHasher(a).Key([]byte(s)) == NewHasher(b).Key([]byte(s[at:])) {
			t.Fatal("a prompt and the text behind it have the key of their concatenation")
		}
		a.Pooling, a.ModelDigest = s[:at], s[at:]
		b.Prompt, b.Pooling, b.ModelDigest = "", s, ""
		if a.Digest() == b.Digest() {
			t.Fatal("fields run into each other")
		}
	})
}

// Long texts are hashed another way, around 64 KiB, to the same key.
func TestLongTextsHaveTheKeysOfTheDefinition(t *testing.T) {
	r := recipe()
	h := NewHasher(r)
	for _, n := range []int{0, 1, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		text := bytes.Repeat([]byte("abcdefg"), n/7+1)[:n]
		// A hasher that was used before gives what a new one gives.
		got, fresh := h.Clone().Key(text), NewHasher(r).Key(text)
		if again := h.Key(text); got != again || got != fresh {
			t.Errorf("%d bytes: %s, %s and %s", n, got, again, fresh)
		}
		// A field holds a text as it holds a recipe's parts.
		fields := [][]byte{
			[]byte(strconv.Itoa(Version)), []byte(r.ModelDigest), []byte(r.Pooling), []byte("true"), {},
			[]byte("256"), []byte("384"), []byte("fp32"), text,
		}
		if want := sha(fields...); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

// sha is the content key as the package's documentation defines it.
func sha(fields ...[]byte) Key {
	h := sha256.New()
	for _, f := range fields {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(f)))
		h.Write(f)
	}
	return Key(h.Sum(nil))
}
