package tokenize

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// partTokenizers are those of all model folders at hand that take long texts
// in parts, and variants of them.
func partTokenizers(t *testing.T) map[string][]byte {
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
			} else if safeCuts(&c) == (cuts{}) && safeParts(&c).allowed {
				found[filepath.Base(filepath.Dir(file))] = b
			}
		}
	}
	for _, name := range []string{"roberta-bytebpe-nonorm", "qwen3-lasttoken-bf16", "modernbert-cls-window16", "xlmr-unigram-external",
		"albert-meansqrt-sharded", "camembert-mean", "xlmr-mean-long-limit", "albert-cls-groups"} {
		if found[name] == nil {
			t.Errorf("%s takes no parts", name)
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
	found["variant llama"] = withField(t, withField(t, unigram, "pre_tokenizer", "null"), "normalizer",
		`{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`)
	found["variant quotes"] = withField(t, unigram, "normalizer",
		`{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"String":"\u0060\u0060"},"content":"\""},{"type":"NFKC"}]}`)
	found["variant bytes alone"] = withField(t, bytes, "pre_tokenizer", byteLevelAlone)
	found["variant added tokens"] = withField(t, bytes, "added_tokens",
		`[`+oneToken(5, "the cat sat on", true, false)+`,`+oneToken(6, "world on the", false, false)+`,`+oneToken(7, "数据库", true, true)+`,`+oneToken(8, "qx", true, true)+`]`)
	return found
}

func oneToken(id int, content string, normalized, word bool) string {
	return fmt.Sprintf(`{"id":%d,"content":%q,"normalized":%v,"single_word":%v,"lstrip":false,"rstrip":false,"special":false}`, id, content, normalized, word)
}

var partPieces = append([]string{
	"a", "b", " a", "a b", "Hello world", " the cat sat", " the cat sat on the", "don't", "I'LL", "'s", "it 's", " on the", "x", "<s>", "</s>", "<mask>", " <mask> ",
	"<|endoftext|>", "|||IP_ADDRESS|||", "12345", " 7", "``", "''", "a ́", "e\u0301 e", "\u0600a b", "\u0600\x00a b", "!\n\n", "   ", "\u200d",
}, pieces...)

// alphabets are what long runs are made of, each with what may stand between.
var alphabets = map[string][]string{
	"one letter":         {"a"},
	"two letters":        {"a", "b"},
	"one digit":          {"0"},
	"digits":             strings.Split("0123456789", ""),
	"letters":            strings.Split("etaoinshrdluETAOIN", ""),
	"syllables":          {"the", "tion", "ing", "er", "s", "qu", "xx", "123"},
	"base64":             strings.Split("ABCDEFGHabcdefgh0123456789+/=", ""),
	"ideographs":         {"数", "据", "库", "一", "丁", "的"},
	"one ideograph":      {"数"},
	"Russian":            {"при", "вет", " ", "мир", "Ё", "й", ", "},
	"Thai, Hindi":        {"สวัส", "ดี", "ครับ", "हिन्दी", "कमल", " "},
	"Arabic, Hebrew":     {"مرحبا", "ال", "שלום", " "},
	"kana":               {"ひらがな", "カタカナ", "ー", "か\u3099", "。"},
	"Korean":             {"한국어", "가", "각", "\u1100\u1161", " "},
	"spaces":             {" ", "  ", "\n"},
	"ideographs, stops":  {"数据", "的", "一", "数据库的一丁", "，", "。"},
	"emoji":              {"🚀", "👩‍👩‍👧", "❤️"},
	"letters and others": {"abc", "数据", "É", "e\u0301", "🚀", "ß", "가", "12", "'re", "A数", "\u3099"},
}

// A long text has the ids that it has when it is tokenized whole, whatever it is made of.
func TestPartsChangeNothing(t *testing.T) {
	alphabetNames := slices.Sorted(maps.Keys(alphabets))
	before := append([]string{""}, partPieces...)
	for name, tokenizerJSON := range partTokenizers(t) {
		t.Run(name, func(t *testing.T) {
			fewer := 0
			for _, o := range []Options{{MaxTokens: 4}, {MaxTokens: 9}, {MaxTokens: 20, Prompt: "query: "}} {
				parts, whole := open(t, tokenizerJSON, o), open(t, tokenizerJSON, o)
				whole.limits.whole = true
				rapid.Check(t, func(t *rapid.T) {
					parts.limits.firstBytes = rapid.IntRange(8, 8*o.MaxTokens).Draw(t, "first")
					letters := alphabets[rapid.SampledFrom(alphabetNames).Draw(t, "alphabet")]
					if rapid.Bool().Draw(t, "pieces") {
						letters = partPieces
					}
					var text strings.Builder
					for range rapid.IntRange(1, 3).Draw(t, "runs") {
						text.WriteString(rapid.SampledFrom(before).Draw(t, "before"))
						for range rapid.IntRange(0, 250).Draw(t, "length") {
							text.WriteString(rapid.SampledFrom(letters).Draw(t, "letter"))
						}
					}
					if sameIDs(t, parts, whole, text.String()) < text.Len() {
						fewer++
					}
				})
			}
			if fewer < 20 {
				t.Errorf("only %d texts were taken in parts", fewer)
			}
		})
	}
}

// The same with the first part's end at every place of difficult texts, and as few
// tokens as this part has, so that all of them count.
func TestPartsAtEveryPlace(t *testing.T) {
	texts := []string{
		"The cat's 'em'revolt   sat on a b <mask> c d</s> e f  gh 12345 ij k'll've ABCDef m\n n o\u0301 p q [MASK]r s ``t u'' 数据库 v w 据\u3099x y ",
		"привет мир hello worlds the cats 数据库数据库 \u1100\u1161가\u11a8 e\u0301\u0301 <\u0338>👩‍👩‍👧🚀❤️ base64+/abc==中中中ABCdef ",
		"ไม่ ที่นี่ น้ำ हिन्दी में क्षत्रिय مَرحبًا かが\u3099き\u309a A中Bcd 中Abc中 🚀Abc 12Abc34 abc''def``g",
	}
	for name, tokenizerJSON := range partTokenizers(t) {
		tokenizer := open(t, tokenizerJSON, Options{MaxTokens: 2000})
		tail := tokenizer.facts.tail
		for _, text := range texts {
			var whole Tokens
			var arena column.Arena
			arena.Append([]byte(strings.Repeat(text, 2)))
			tokenizer.limits.maxTokens, tokenizer.limits.whole = 2000, true
			encode(t, tokenizer, &arena, &whole)
			tokenizer.limits.whole = false
			for end := 8; end < len(text); end++ {
				tokenizer.limits.firstBytes = end
				for kept := 1 + end%7; kept < end; kept += 7 {
					tokenizer.limits.maxTokens = tokenizer.facts.head + kept + tail
					out := newChunk(1, tokenizer.limits.maxTokens)
					if _, err := tokenizer.native.encode(tokenizer.limits, &arena, []int32{0}, &out); err != nil {
						t.Fatal(err)
					}
					if out.work >= 2*len(text) {
						break // a longer part was needed
					}
					n := len(out.ids) - tail
					if !slices.Equal(whole.At(0)[:n], out.ids[:n]) {
						t.Fatalf("%s, %q to %d, limit %d: - whole, + in parts:\n%s", name, text, end, len(out.ids), cmp.Diff(whole.At(0)[:n], out.ids[:n]))
					}
				}
			}
		}
	}
}

// With a pattern that tells capitals, what stands behind one may join a piece that is
// whole without it.
func TestPartsBehindCapitals(t *testing.T) {
	tokenizerJSON := `{"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"Split","pattern":{"Regex":` + quote(o200k) + `},"behavior":"Isolated","invert":false},
		"model":{"type":"BPE","unk_token":"b","vocab":{"数":0,"A":1,"b":2,"数A":3,"数数A":4},"merges":[["数","A"],["数","数A"]]}}`
	parts, whole := open(t, []byte(tokenizerJSON), Options{MaxTokens: 2}), open(t, []byte(tokenizerJSON), Options{MaxTokens: 2})
	whole.limits.whole = true
	text := "数数数Ab" + strings.Repeat("bb bb ", 20)
	for end := 1; end < 20; end++ {
		parts.limits.firstBytes = end
		if work := sameIDs(t, parts, whole, text); work >= len(text) {
			t.Errorf("from %d on, the text is not taken in parts", end)
		}
	}
}

// Where even the first token depends on how the text ends, a part decides nothing: of
// noughts in pairs the odd one comes first, and of noughts in tokens of 32 the rest.
func TestPartsThatDecideNothing(t *testing.T) {
	for _, size := range []int{2, 32} {
		tokenizerJSON := fmt.Sprintf(`{"version":"1.0","added_tokens":[],"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["0",-5],[%q,-1]]}}`, strings.Repeat("0", size))
		parts, whole := open(t, []byte(tokenizerJSON), Options{MaxTokens: 4}), open(t, []byte(tokenizerJSON), Options{MaxTokens: 4})
		whole.limits.whole = true
		for length := 1024; length < 1024+2*size; length++ {
			for first := 32; first < 32+size; first += 1 + size/8 {
				parts.limits.firstBytes = first
				sameIDs(t, parts, whole, strings.Repeat("0", length))
			}
		}
	}
}

// sameIDs compares the ids of a text, and returns the bytes that were tokenized for
// them in parts.
func sameIDs(t rapid.TB, parts, whole *Tokenizer, text string) int {
	var texts column.Arena
	texts.Append([]byte(text))
	got, want := newChunk(1, parts.limits.maxTokens), newChunk(1, parts.limits.maxTokens)
	if _, err := parts.native.encode(parts.limits, &texts, []int32{0}, &got); err != nil {
		t.Fatal(err)
	}
	if _, err := whole.native.encode(whole.limits, &texts, []int32{0}, &want); err != nil {
		t.Fatal(err)
	}
	a, b := want.ids[:want.ends[0]], got.ids[:got.ends[0]]
	if !slices.Equal(a, b) || want.truncated[0] != got.truncated[0] {
		t.Fatalf("%q, limit %d: - whole, + in parts:\n%s", text, parts.limits.maxTokens, cmp.Diff(a, b))
	}
	return got.work
}

// Of a long text a few dozen times what is kept is tokenized, whatever it is made of. Only
// what gives fewer tokens than the limit, since all of it is one unknown token, costs more.
func TestPartsOfLongTexts(t *testing.T) {
	const maxTokens, size = 64, 1 << 18
	for name, tokenizerJSON := range partTokenizers(t) {
		tokenizer := open(t, tokenizerJSON, Options{MaxTokens: maxTokens})
		for _, unit := range []string{
			"some natural words of English, ", "a", "7391", "etaoin", "TheQuickBrownFox", "数据库的一丁，", "привет мир, ", "สวัสดีครับ", "कमल हिन्दी में, ",
			"안녕하세요", "🚀🌍", "QUJDRA+/eHl6", "{\"id\":17,\"x\":[1,2]}\n", "https://example.org/a?b=c&",
		} {
			if name == "variant cleaned" && strings.HasPrefix(unit, "数") {
				continue // spaces are put around them, and no place is allowed beside a space
			}
			var texts column.Arena
			texts.Append([]byte(strings.Repeat(unit, size/len(unit))))
			out := newChunk(1, maxTokens)
			if _, err := tokenizer.native.encode(tokenizer.limits, &texts, []int32{0}, &out); err != nil {
				t.Fatal(err)
			}
			if most := 40 * maxTokens * 8; out.truncated[0] && out.work > most || out.work > 8*size {
				t.Errorf("%s, %q: %d bytes were tokenized, truncated %v", name, unit, out.work, out.truncated[0])
			}
		}
	}
}

// A byte behind the part that is not UTF-8 is an error all the same.
func TestLongTextThatIsNotUTF8(t *testing.T) {
	tokenizer := open(t, partTokenizers(t)["roberta-bytebpe-nonorm"], Options{MaxTokens: 4})
	var texts column.Arena
	texts.Append([]byte("fine"))
	texts.Append([]byte(strings.Repeat("some words ", 100) + "\xff"))
	var out Tokens
	if err := tokenizer.Encode(t.Context(), &texts, []int32{0, 1}, &out); err == nil || !strings.Contains(err.Error(), "document 1") {
		t.Errorf("got %v, want document 1 named", err)
	}
}

// What is not proved is tokenized whole.
func TestNoParts(t *testing.T) {
	all := partTokenizers(t)
	for name, change := range map[string][3]string{
		"a pattern with one more":       {"qwen3-lasttoken-bf16", "pre_tokenizer", splitThenBytes(gpt2+`|\p{L} \p{L}`, "")},
		"a pattern that removes pieces": {"qwen3-lasttoken-bf16", "pre_tokenizer", `{"type":"Split","pattern":{"Regex":"\\s+"},"behavior":"MergedWithNext","invert":false}`},
		"pieces of a length":            {"qwen3-lasttoken-bf16", "pre_tokenizer", `{"type":"FixedLength","length":5}`},
		"letters replaced":              {"xlmr-unigram-external", "normalizer", `{"type":"Replace","pattern":{"String":"a"},"content":"x"}`},
		"another pattern replaced":      {"xlmr-unigram-external", "normalizer", `{"type":"Replace","pattern":{"Regex":"-+"},"content":"-"}`},
		"an unknown normalizer":         {"xlmr-unigram-external", "normalizer", `{"type":"Nmt"}`},
		"an unknown model":              {"xlmr-unigram-external", "model", `{"type":"Other"}`},
	} {
		c, _, err := readConfig(withField(t, all[change[0]], change[1], change[2]))
		if err != nil {
			t.Fatal(err)
		}
		if safeParts(&c).allowed {
			t.Errorf("%s: parts were allowed", name)
		}
	}
}
