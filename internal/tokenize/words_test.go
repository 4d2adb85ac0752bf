package tokenize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"localembed/internal/column"
	"localembed/internal/testenv"
)

// The patterns of the usual families.
const (
	gpt2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	cl100k = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200k  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

var byteLevelAlone = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}`

func splitThenBytes(regex, before string) string {
	return `{"type":"Sequence","pretokenizers":[` + before + `{"type":"Split","pattern":{"Regex":` + quote(regex) +
		`},"behavior":"Isolated","invert":false},` + byteLevelAlone + `]}`
}

func quote(s string) string {
	return `"` + strings.ReplaceAll(s, `\`, `\\`) + `"`
}

// wordTokenizers are those of all model folders at hand that may be cut in front of
// words, and variants of them.
func wordTokenizers(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, zoo := range []string{testenv.Shared(t, "zoo"), filepath.Join("..", "..", "models", "testdata", "zoo")} {
		files, err := filepath.Glob(filepath.Join(zoo, "*", "tokenizer.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no tokenizers: %v", zoo, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if c, _, err := readConfig(b); err != nil {
				t.Fatal(err)
			} else if safeCuts(&c) == (cuts{}) && safeWordCuts(&c) {
				found[filepath.Base(filepath.Dir(file))] = b
			}
		}
	}
	for _, name := range []string{"roberta-bytebpe-nonorm", "qwen3-lasttoken-bf16", "modernbert-cls-window16", "xlmr-unigram-external",
		"albert-meansqrt-sharded", "camembert-mean", "xlmr-mean-long-limit", "albert-cls-groups"} {
		if found[name] == nil {
			t.Errorf("%s gets no cuts", name)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	bytes, unigram := found["qwen3-lasttoken-bf16"], found["xlmr-unigram-external"]
	found["variant cl100k"] = withField(t, bytes, "pre_tokenizer", splitThenBytes(cl100k, ""))
	found["variant o200k"] = withField(t, bytes, "pre_tokenizer", splitThenBytes(o200k, `{"type":"Digits","individual_digits":true},`))
	found["variant gpt2 split"] = withField(t, bytes, "pre_tokenizer", splitThenBytes(gpt2, `{"type":"Punctuation","behavior":"Isolated"},`))
	found["variant prefix space"] = withField(t, bytes, "pre_tokenizer", `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`)
	found["variant metaspace first"] = withField(t, unigram, "pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}`)
	found["variant stripped"] = withField(t, unigram, "normalizer",
		`{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Strip","strip_left":true,"strip_right":true},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}]}`)
	found["variant cleaned"] = withField(t, unigram, "normalizer",
		`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}`)
	return found
}

var wordPieces = append([]string{
	"a", "b", " a", "a b", "Hello world", " the cat sat", "don't", "I'LL", "'s", "it 's", " on the", "x", "<s>", "</s>", "<mask>", " <mask> ",
	"<|endoftext|>", "|||IP_ADDRESS|||", "12345", " 7", "``", "''", "a ́", "e\u0301 e", "\u0600a b", "\u0600\x00a b", "!\n\n", "   ", "\u200d",
}, pieces...)

// Where a text may be cut in front of words, its ids are those of the uncut text.
func TestWordCutsChangeNothing(t *testing.T) {
	for name, tokenizerJSON := range wordTokenizers(t) {
		t.Run(name, func(t *testing.T) {
			for _, o := range []Options{{MaxTokens: 4}, {MaxTokens: 8}, {MaxTokens: 24, Prompt: "query: "}} {
				cutting, whole := open(t, tokenizerJSON, o), open(t, tokenizerJSON, o)
				whole.limits.words = false
				rapid.Check(t, func(t *rapid.T) {
					var texts column.Arena
					for range rapid.IntRange(1, 6).Draw(t, "texts") {
						parts := rapid.SliceOfN(rapid.SampledFrom(wordPieces), 0, 40).Draw(t, "pieces")
						texts.Append([]byte(strings.Join(parts, "")))
					}
					sameIDs(t, cutting, whole, &texts)
				})
			}
		})
	}
}

// The same for the tokens before every single place where a cut is allowed, which
// must be the first tokens of the whole text.
func TestWordCutsAtEveryPlace(t *testing.T) {
	text := []byte("The cat's 'em   sat on a b <mask> c d</s> e f  gh 12 ij k'll m\n n o\u0301 p q [MASK]r s ``t u'' 数 v w 据x y z")
	for name, tokenizerJSON := range wordTokenizers(t) {
		tokenizer := open(t, tokenizerJSON, Options{MaxTokens: 400})
		tail := tokenizer.facts.tail
		var texts column.Arena
		texts.Append(text)
		for from := 0; from < len(text); from++ {
			if end := nextWord(text, from); end < len(text) && end == from {
				texts.Append(text[:end])
			}
		}
		if texts.Len() < 12 {
			t.Fatalf("only %d places", texts.Len()-1)
		}
		var out Tokens
		tokenizer.limits.words = false
		encode(t, tokenizer, &texts, &out)
		for i := 1; i < out.Len(); i++ {
			part := out.At(i)[:len(out.At(i))-tail]
			if diff := cmp.Diff(out.At(0)[:len(part)], part); diff != "" {
				t.Errorf("%s, %q: - whole text, + part:\n%s", name, texts.At(i), diff)
			}
		}
	}
}

func sameIDs(t *rapid.T, cutting, whole *Tokenizer, texts *column.Arena) {
	docs := make([]int32, texts.Len())
	for i := range docs {
		docs[i] = int32(i)
	}
	var got, want Tokens
	if err := cutting.Encode(t.Context(), texts, docs, &got); err != nil {
		t.Fatal(err)
	}
	if err := whole.Encode(t.Context(), texts, docs, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("- uncut, + cut:\n%s", diff)
	}
}

// Of 10 MB of words the library gets a few times what is kept.
func TestLongTextsOfWordsAreCheap(t *testing.T) {
	const maxTokens = 64
	var texts column.Arena
	texts.Append([]byte("short"))
	texts.Append([]byte(strings.Repeat("some natural words of English, ", 10<<20/31)))
	for name, tokenizerJSON := range wordTokenizers(t) {
		tokenizer := open(t, tokenizerJSON, Options{MaxTokens: maxTokens})
		calls, bytes := 0, 0
		room := newChunk(1, maxTokens)
		err := growPrefix(texts.At(1), maxTokens*firstBytesPerToken, func(_, end int) (bool, error) {
			calls++
			bytes += end
			err := tokenizer.encodePrefix(&texts, 1, end, room)
			return room.truncated[0], err
		})
		if err != nil || !room.truncated[0] {
			t.Fatalf("%s: %v, truncated %v", name, err, room.truncated[0])
		}
		if most := 4 * maxTokens * firstBytesPerToken; calls > 3 || bytes > most {
			t.Errorf("%s: %d calls with %d bytes, want at most 3 with %d", name, calls, bytes, most)
		}
		// Encode goes the same way.
		var out Tokens
		start := cpuSeconds(t)
		encode(t, tokenizer, &texts, &out)
		if spent := cpuSeconds(t) - start; spent > 1 {
			t.Errorf("%s: 10 MiB took %.1f seconds of processor time", name, spent)
		}
		if diff := cmp.Diff(room.ids[:room.ends[0]], out.At(1)); diff != "" {
			t.Errorf("%s: - the parts alone, + Encode:\n%s", name, diff)
		}
	}
}

// A byte behind the cut that is not UTF-8 is an error all the same.
func TestLongTextThatIsNotUTF8(t *testing.T) {
	tokenizer := open(t, wordTokenizers(t)["roberta-bytebpe-nonorm"], Options{MaxTokens: 4})
	var texts column.Arena
	texts.Append([]byte("fine"))
	texts.Append([]byte(strings.Repeat("some words ", 100) + "\xff"))
	var out Tokens
	if err := tokenizer.Encode(t.Context(), &texts, []int32{0, 1}, &out); err == nil || !strings.Contains(err.Error(), "document 1") {
		t.Errorf("got %v, want document 1 named", err)
	}
}

// What is not proved is tokenized whole.
func TestNoWordCuts(t *testing.T) {
	all := wordTokenizers(t)
	for name, change := range map[string][3]string{
		"no pre-tokenizer":            {"qwen3-lasttoken-bf16", "pre_tokenizer", `null`},
		"bytes without a pattern":     {"qwen3-lasttoken-bf16", "pre_tokenizer", byteLevelAlone},
		"a pattern with one more":     {"qwen3-lasttoken-bf16", "pre_tokenizer", splitThenBytes(gpt2+`|\p{L} \p{L}`, "")},
		"a pattern without words":     {"qwen3-lasttoken-bf16", "pre_tokenizer", splitThenBytes(`\p{N}+|\s+(?!\S)`, "")},
		"something before the split":  {"qwen3-lasttoken-bf16", "pre_tokenizer", splitThenBytes(gpt2, byteLevelAlone+",")},
		"Metaspace without splitting": {"xlmr-unigram-external", "pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":false}`},
		"letters replaced":            {"xlmr-unigram-external", "normalizer", `{"type":"Replace","pattern":{"String":"a"},"content":"x"}`},
		"punctuation made a space":    {"xlmr-unigram-external", "normalizer", `{"type":"Replace","pattern":{"String":"-"},"content":" "}`},
		"spaces replaced":             {"xlmr-unigram-external", "normalizer", `{"type":"Replace","pattern":{"String":" "},"content":"▁"}`},
		"another pattern replaced":    {"xlmr-unigram-external", "normalizer", `{"type":"Replace","pattern":{"Regex":"-+"},"content":"-"}`},
		"an unknown normalizer":       {"xlmr-unigram-external", "normalizer", `{"type":"Nmt"}`},
		"an empty map":                {"xlmr-unigram-external", "normalizer", `{"type":"Precompiled","precompiled_charsmap":""}`},
		"a token with a space":        {"xlmr-unigram-external", "added_tokens", `[{"id":5,"content":"a b"}]`},
		"a token stripped to nothing": {"variant stripped", "added_tokens", `[{"id":5,"content":"  ","normalized":true}]`},
		"a token normalized to one":   {"xlmr-unigram-external", "added_tokens", `[{"id":5,"content":"a\u00a0b","normalized":true}]`},
	} {
		c, _, err := readConfig(withField(t, all[change[0]], change[1], change[2]))
		if err != nil {
			t.Fatal(err)
		}
		if safeWordCuts(&c) {
			t.Errorf("%s: cuts were allowed", name)
		}
	}
}

// A map with a key of one ASCII character is found out.
func TestCharsmapKeepsASCII(t *testing.T) {
	c, _, err := readConfig(wordTokenizers(t)["xlmr-unigram-external"])
	if err != nil {
		t.Fatal(err)
	}
	charsmap := c.Normalizer.Charsmap
	if !charsmapKeepsASCII(charsmap) {
		t.Fatal("SentencePiece's own map should keep ASCII")
	}
	changed := 0
	for i := 4; i < 4+4*1024 && i+1 < len(charsmap); i += 4 { // makes keys of what the root leads to
		one := append([]byte(nil), charsmap...)
		one[i+1] |= 1
		if !charsmapKeepsASCII(one) {
			changed++
		}
	}
	if changed < 52 {
		t.Errorf("of all letters, %d were noticed as keys", changed)
	}
}

func TestNextWord(t *testing.T) {
	for text, want := range map[string]int{
		"ab cd": 2, "ab cd ef": 2, " a b": 2, "Ab Cd": 2,
		"": 0, "abcd": 4, "ab  cd": 6, "ab\tcd": 5, "ab\ncd": 5, "a1 cd": 5, "ab 1d": 5, "ab, cd": 6, "ab ": 3, "a b": 3,
		"\u0600a b": 5, "\x00a b": 4, "éa b": 5, "ab é": 5, "ab \u0301c": 6,
	} {
		if got := nextWord([]byte(text), 0); got != want {
			t.Errorf("%q is cut at %d, want %d", text, got, want)
		}
	}
	if got := nextWord([]byte("ab cd ef"), 3); got != 5 {
		t.Errorf("from 3 on, the cut is at %d, want 5", got)
	}
}

// Prefixes that are not enough double, so that all together are a few times the last.
func TestGrowPrefix(t *testing.T) {
	text := []byte(strings.Repeat("word ", 1<<20) + "word")
	calls, bytes, last := 0, 0, 0
	err := growPrefix(text, 512, func(_, end int) (bool, error) {
		calls, bytes, last = calls+1, bytes+end, end
		return end > 1<<19, nil
	})
	if err != nil || last < 1<<19 || last > 1<<20+16 || bytes > 2*last || calls > 12 {
		t.Errorf("%v after %d calls with %d bytes, the last %d", err, calls, bytes, last)
	}
	last = 0
	if err := growPrefix(text, 512, func(_, end int) (bool, error) { last = end; return false, nil }); err != nil || last != len(text) {
		t.Errorf("%v, the last try is %d of %d bytes", err, last, len(text))
	}
}
