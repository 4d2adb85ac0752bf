package tokenize

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"localembed/internal/column"
)

// pieces are what texts are made of where a cut could go wrong.
var pieces = []string{
	" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u2028", "\u3000", "\u200b", "\x00", "\ufeff",
	"hello", "World", "ÉCOLE", "straße", "İ", "e\u0301", "\u0301", "\u0338", "=", "<\u0338", "unaffable",
	"[SEP]", "[CLS]", "[MASK]", "[UNK]", "[PAD]", "[sep]", "[SE", "P]", "[unused1]",
	",", ".", "-", "_", "[", "]", "##ing", "'", "¿", "、",
	"数", "据", "数据库", "𠀀", "한국어", "ひらがな", "ไทย", "🚀", "👩‍👩‍👧", "\uf900", "㐀", "䶿", "䷀",
	"0xDEADBEEF", "2024-01-31", strings.Repeat("a", 99), strings.Repeat("b", 101), strings.Repeat("c1", 200),
	strings.Repeat(" ", 300), strings.Repeat("\n \t", 150), strings.Repeat("d", 257) + "\u0301", strings.Repeat("e", 300) + "é",
}

// A text is tokenized to the same ids whether or not it may be cut and shortened first.
func TestCutsChangeNothing(t *testing.T) {
	tokenizerJSON := miniLMJSON(t)
	for name, normalizer := range map[string]string{
		"MiniLM":                    "",
		"cased, no clean-up":        `{"type":"BertNormalizer","clean_text":false,"handle_chinese_chars":false,"strip_accents":null,"lowercase":false}`,
		"cased, accents stripped":   `{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":true,"lowercase":false}`,
		"lower-cased, accents kept": `{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":false,"lowercase":true}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			variant := tokenizerJSON
			if normalizer != "" {
				variant = withField(t, tokenizerJSON, "normalizer", normalizer)
			}
			for _, maxTokens := range []int{3, 8, 32} {
				checkCuts(t, variant, Options{MaxTokens: maxTokens, Prompt: ""}, 300)
			}
			checkCuts(t, variant, Options{MaxTokens: 12, Prompt: "query: "}, 300)
		})
	}
}

// The same with every place of some texts at the first cut, and tokens at the limit there.
func TestCutsAtEveryPlace(t *testing.T) {
	cores := []string{
		"hello[SEP]world", "[MASK]", "[sep][SEP]", "x[SEP", "hello数据world", "数\u0301据", "e\u0301x\u0301", "=\u0338=",
		"un-affable,unaffable", "a\x00b\x00,c", "ÉCOLE straße", "一丁", "\uf900\uf901", "𠀀𠀁", "don't", "「日本」",
	}
	for maxTokens := 3; maxTokens <= 8; maxTokens++ {
		cutting, whole := miniLM(t, Options{MaxTokens: maxTokens}), miniLM(t, Options{MaxTokens: maxTokens})
		whole.limits.cuts = cuts{}
		var texts column.Arena
		for _, core := range cores {
			for shift := range 8*maxTokens + 1 {
				for _, before := range []string{"", "a", "a b", "a b c", "a b c d"} {
					texts.Append([]byte(before + strings.Repeat(" ", shift) + core + " tail"))
				}
			}
		}
		var got, want Tokens
		encode(t, cutting, &texts, &got)
		encode(t, whole, &texts, &want)
		for i := range texts.Len() {
			if diff := cmp.Diff(want.At(i), got.At(i)); diff != "" || want.Truncated[i] != got.Truncated[i] {
				t.Fatalf("limit %d, text %q: - uncut, + cut:\n%s", maxTokens, texts.At(i), diff)
			}
		}
	}
}

func checkCuts(t *testing.T, tokenizerJSON []byte, o Options, most int) {
	t.Helper()
	cutting, whole := open(t, tokenizerJSON, o), open(t, tokenizerJSON, o)
	if cutting.limits.cuts == (cuts{}) {
		t.Fatal("this tokenizer gets no cuts: there is nothing to test")
	}
	whole.limits.cuts = cuts{}
	rapid.Check(t, func(t *rapid.T) {
		var texts column.Arena
		for range rapid.IntRange(1, 8).Draw(t, "texts") {
			parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, most).Draw(t, "pieces")
			texts.Append([]byte(strings.Join(parts, "")))
		}
		var got, want Tokens
		docs := make([]int32, texts.Len())
		for i := range docs {
			docs[i] = int32(i)
		}
		if err := cutting.Encode(t.Context(), &texts, docs, &got); err != nil {
			t.Fatal(err)
		}
		if err := whole.Encode(t.Context(), &texts, docs, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("- uncut, + cut:\n%s", diff)
		}
	})
}

// What is not proved safe gets no cuts.
func TestNoCuts(t *testing.T) {
	tokenizerJSON := miniLMJSON(t)
	for name, change := range map[string][2]string{
		"another pre-tokenizer":            {"pre_tokenizer", `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}`},
		"no pre-tokenizer":                 {"pre_tokenizer", `null`},
		"a composing normalizer":           {"normalizer", `{"type":"NFC"}`},
		"a composing normalizer beside it": {"normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}]}`},
		"an added token with a space":      {"added_tokens", `[{"id":5,"content":"a b"}]`},
		"an added token beyond ASCII":      {"added_tokens", `[{"id":5,"content":"数"}]`},
		"an added token that is a word":    {"added_tokens", `[{"id":5,"content":"<w>","single_word":true}]`},
	} {
		c, _, err := readConfig(withField(t, tokenizerJSON, change[0], change[1]))
		if err != nil {
			t.Fatal(err)
		}
		if got := safeCuts(&c); got != (cuts{}) {
			t.Errorf("%s: cuts were allowed", name)
		}
	}
	c, _, err := readConfig(withField(t, tokenizerJSON, "added_tokens", `[{"id":5,"content":"word"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := safeCuts(&c); got.runEnd != 0 || !got.before[' '] {
		t.Error("an added token of letters: cuts should be allowed at spaces, and long words kept whole")
	}
}

// The part of a text behind the limit costs next to nothing, whatever it is made of.
func TestLongTextsAreCheap(t *testing.T) {
	tokenizer := miniLM(t, Options{MaxTokens: 256})
	const size = 16 << 20
	for name, unit := range map[string]string{
		"words": "some natural words, ", "lines": "line\n", "ideographs": "数据", "no spaces": "a", "punctuation": "a,b;",
		"spaces": " ", "hex": "0f1e2d",
	} {
		var texts column.Arena
		texts.Append([]byte(strings.Repeat(unit, size/len(unit)) + " hello"))
		var out Tokens
		start := cpuSeconds(t)
		encode(t, tokenizer, &texts, &out)
		if spent := cpuSeconds(t) - start; spent > 1 {
			t.Errorf("%s: %d MiB took %.1f seconds of processor time", name, size>>20, spent)
		}
	}
}

// withField is the JSON object with one of its fields replaced.
func withField(t *testing.T, object []byte, field, value string) []byte {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		t.Fatal(err)
	}
	fields[field] = json.RawMessage(value)
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
