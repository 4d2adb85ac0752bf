package tokenize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"localembed/internal/column"
)

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
	"ideographs, stops":  {"数据", "的", "一", "数据库的一丁", "，", "。"},
	"emoji":              {"🚀", "👩‍👩‍👧", "❤️"},
	"letters and others": {"abc", "数据", "É", "e\u0301", "🚀", "ß", "가", "12", "'re", "A数", "\u3099"},
}

// A text without words has the ids of the uncut text, whatever stands before and
// behind its runs, and wherever these end.
func TestRunCutsChangeNothing(t *testing.T) {
	alphabetNames := slices.Sorted(maps.Keys(alphabets))
	before := append([]string{""}, wordPieces...)
	for name, tokenizerJSON := range wordTokenizers(t) {
		t.Run(name, func(t *testing.T) {
			cut := 0
			for _, o := range []Options{{MaxTokens: 4}, {MaxTokens: 9}, {MaxTokens: 20, Prompt: "query: "}} {
				cutting, whole := open(t, tokenizerJSON, o), open(t, tokenizerJSON, o)
				whole.limits.words = false
				rapid.Check(t, func(t *rapid.T) {
					letters := alphabets[rapid.SampledFrom(alphabetNames).Draw(t, "alphabet")]
					var text strings.Builder
					for range rapid.IntRange(1, 3).Draw(t, "runs") {
						text.WriteString(rapid.SampledFrom(before).Draw(t, "before"))
						for range rapid.IntRange(0, 250).Draw(t, "length") {
							text.WriteString(rapid.SampledFrom(letters).Draw(t, "letter"))
						}
					}
					var texts column.Arena
					texts.Append([]byte(text.String()))
					if cutting.limits.runs.places(texts.At(0), min(text.Len(), o.MaxTokens*firstBytesPerToken), text.Len()) != nil {
						cut++
					}
					sameIDs(t, cutting, whole, &texts)
				})
			}
			if cutting := open(t, tokenizerJSON, Options{MaxTokens: 4}); cutting.limits.runs != (runs{}) && cut < 20 {
				t.Errorf("only %d texts had places for a cut", cut)
			}
		})
	}
}

// Of 10 MiB without words, only a few dozen times the kept part is tokenized.
func TestLongRunsAreCheap(t *testing.T) {
	const maxTokens = 64
	for name, tokenizerJSON := range wordTokenizers(t) {
		tokenizer := open(t, tokenizerJSON, Options{MaxTokens: maxTokens})
		if tokenizer.limits.runs == (runs{}) {
			t.Logf("%s gets no places in runs", name)
			continue
		}
		// One digit is left out: with some Unigram vocabularies even the first token of
		// a text of zeros depends on how many there are.
		units := []string{"a", "7391", "etaoin", "TheQuickBrownFox"}
		if known := ideographs(t, tokenizerJSON); tokenizer.limits.runs.ideographs && known != "" {
			units = append(units, known)
		}
		for _, unit := range units {
			var texts column.Arena
			texts.Append([]byte(strings.Repeat(unit, 10<<20/len(unit))))
			var out Tokens
			start := cpuSeconds(t)
			encode(t, tokenizer, &texts, &out)
			if spent := cpuSeconds(t) - start; spent > 1 || !out.Truncated[0] {
				t.Errorf("%s, %q: %.1f seconds of processor time, truncated %v", name, unit, spent, out.Truncated[0])
			}
		}
	}
}

// ideographs are those that a vocabulary has, one after the other.
func ideographs(t *testing.T, tokenizerJSON []byte) string {
	c, _, err := readConfig(tokenizerJSON)
	if err != nil {
		t.Fatal(err)
	}
	known := ""
	for _, r := range string(c.Model.Vocab) {
		if r >= 0x4E00 && r <= 0x9FFF {
			known += string(r)
		}
	}
	return known
}

// Whatever the argument for cuts in runs does not hold for gets none.
func TestNoRunCuts(t *testing.T) {
	all := wordTokenizers(t)
	for name, change := range map[string][3]string{
		"a pattern that looks at case": {"variant o200k", "version", `"1.0"`},
		"a token of letters alone":     {"qwen3-lasttoken-bf16", "added_tokens", `[{"id":5,"content":"hello"}]`},
		"a token that is replaced":     {"albert-meansqrt-sharded", "added_tokens", `[{"id":5,"content":"<x>","normalized":true}]`},
		"bytes for unknown characters": {"xlmr-unigram-external", "model", `{"type":"Unigram","byte_fallback":true,"vocab":[["ab",0]]}`},
		"whole words first":            {"qwen3-lasttoken-bf16", "model", `{"type":"BPE","ignore_merges":true,"merges":[],"vocab":` + allLetters()},
		"another end of a word":        {"qwen3-lasttoken-bf16", "model", `{"type":"BPE","end_of_word_suffix":"</w>","merges":[],"vocab":` + allLetters()},
		"letters that are unknown":     {"qwen3-lasttoken-bf16", "model", `{"type":"BPE","vocab":{"ab":0,"a":1,"b":2},"merges":[]}`},
		"words as tokens":              {"qwen3-lasttoken-bf16", "model", `{"type":"WordLevel","vocab":{"ab":0}}`},
	} {
		c, _, err := readConfig(withField(t, all[change[0]], change[1], change[2]))
		if err != nil {
			t.Fatal(err)
		}
		if got := safeRuns(&c); got != (runs{}) {
			t.Errorf("%s: cuts were allowed: %+v", name, got)
		}
	}
}

// allLetters is a vocabulary of all ASCII letters and digits, and the end of its model.
func allLetters() string {
	var entries []string
	for c := rune('0'); c <= 'z'; c++ {
		if (runs{}).plain(c) {
			entries = append(entries, fmt.Sprintf("%q:%d", string(c), len(entries)))
		}
	}
	return "{" + strings.Join(entries, ",") + "}}"
}
