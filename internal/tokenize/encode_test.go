package tokenize

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/testenv"
)

// Ids of all-MiniLM-L6-v2.
const (
	cls   = 101
	sep   = 102
	hello = 7592
	world = 2088
)

func TestEncode(t *testing.T) {
	for _, tt := range []struct {
		name      string
		options   Options
		text      string
		want      []uint32
		truncated bool
	}{
		{"whole", Options{MaxTokens: 256}, "hello world", []uint32{cls, hello, world, sep}, false},
		{"exactly the limit", Options{MaxTokens: 4}, "Hello World", []uint32{cls, hello, world, sep}, false},
		{"one over the limit", Options{MaxTokens: 3}, "hello world", []uint32{cls, hello, sep}, true},
		{"a literal special token", Options{MaxTokens: 256}, "hello[SEP]world", []uint32{cls, hello, sep, world, sep}, false},
		{"a text of a special token, cut", Options{MaxTokens: 4}, "hello [SEP] world", []uint32{cls, hello, sep, sep}, true},
		{"U+0000 does not end a text", Options{MaxTokens: 256}, "hello\x00 world", []uint32{cls, hello, world, sep}, false},
		{"no text", Options{MaxTokens: 256}, "", []uint32{cls, sep}, false},
		{"prompt", Options{MaxTokens: 256, Prompt: "hello "}, "world", []uint32{cls, hello, world, sep}, false},
		{"the prompt counts", Options{MaxTokens: 4, Prompt: "hello "}, "world hello", []uint32{cls, hello, world, sep}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var texts column.Arena
			texts.Append([]byte(tt.text))
			var got Tokens
			encode(t, miniLM(t, tt.options), &texts, &got)
			want := Tokens{IDs: tt.want, Ends: []int64{int64(len(tt.want))}, Truncated: []bool{tt.truncated}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

// The documents asked for come in the order asked for, behind what was there,
// whatever the number of cores.
func TestEncodeOrder(t *testing.T) {
	tokenizer := miniLM(t, Options{MaxTokens: 64})
	var texts column.Arena
	var docs []int32
	const n = 5*chunkDocs + 7
	for i := range n {
		texts.Append([]byte(strings.Repeat("hello ", i%70)))
		docs = append(docs, int32(n-1-i))
	}
	for _, cores := range []int{1, 2, 8} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		out := Tokens{IDs: []uint32{1, 2}, Ends: []int64{2}, Truncated: []bool{false}}
		if err := tokenizer.Encode(context.Background(), &texts, docs, &out); err != nil {
			t.Fatal(err)
		}
		if out.Len() != n+1 || int(out.Ends[n]) != len(out.IDs) {
			t.Fatalf("%d cores: %d documents, %d ids", cores, out.Len(), len(out.IDs))
		}
		for i, doc := range docs {
			words := int(doc) % 70
			if got, want := len(out.At(i+1)), min(words+2, 64); got != want || out.Truncated[i+1] != (words+2 > 64) {
				t.Fatalf("%d cores: document %d has %d ids, truncated %v, want %d", cores, doc, got, out.Truncated[i+1], want)
			}
		}
	}
}

func TestEncodeNamesTheFirstDocumentThatFails(t *testing.T) {
	tokenizer := miniLM(t, Options{MaxTokens: 64})
	var texts column.Arena
	var docs []int32
	for i := range 20 * chunkDocs {
		if i%chunkDocs == 40 && i > 3*chunkDocs {
			texts.Append([]byte("a lone \xff byte"))
		} else {
			texts.Append([]byte("hello"))
		}
		docs = append(docs, int32(i))
	}
	out := Tokens{IDs: []uint32{1}, Ends: []int64{1}, Truncated: []bool{true}}
	err := tokenizer.Encode(context.Background(), &texts, docs, &out)
	var failed *DocumentError
	if !errors.As(err, &failed) || failed.Document != 3*chunkDocs+40 || !strings.Contains(err.Error(), "utf-8") {
		t.Errorf("got %v, want document %d named and utf-8 blamed", err, 3*chunkDocs+40)
	}
	if out.Len() != 1 || len(out.IDs) != 1 || len(out.Truncated) != 1 {
		t.Errorf("the failed call left %d documents behind", out.Len()-1)
	}
}

func TestEncodeStopsWithItsContext(t *testing.T) {
	tokenizer := miniLM(t, Options{MaxTokens: 64})
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("enough")
	cancel(reason)
	var texts column.Arena
	texts.Append([]byte("hello"))
	var out Tokens
	if err := tokenizer.Encode(ctx, &texts, []int32{0}, &out); !errors.Is(err, reason) || out.Len() != 0 {
		t.Errorf("got %v and %d documents, want the context's cause and none", err, out.Len())
	}
}

func TestOpen(t *testing.T) {
	tokenizer := miniLM(t, Options{MaxTokens: 256})
	if tokenizer.VocabSize() != 30522 || tokenizer.PadID() != 0 {
		t.Errorf("vocabulary %d, pad id %d; want 30522, 0", tokenizer.VocabSize(), tokenizer.PadID())
	}
	real := miniLMJSON(t)
	for _, tt := range []struct {
		name  string
		json  string
		o     Options
		class fault.Class
		say   string
	}{
		{"not JSON", "{", Options{MaxTokens: 8}, fault.ModelRefused, "cannot be read"},
		{"no model", "{}", Options{MaxTokens: 8}, fault.ModelRefused, "no model"},
		{"an unknown model", `{"version":"1.0","model":{"type":"New"}}`, Options{MaxTokens: 8}, fault.ModelRefused, "cannot be used"},
		{"a map that makes the library panic", string(withField(t, real, "normalizer", `{"type":"Precompiled","precompiled_charsmap":"AAAA"}`)), Options{MaxTokens: 8}, fault.ModelRefused, "the tokenizer panicked: "},
		{"merges that make it panic", `{"version":"1.0","model":{"type":"BPE","continuing_subword_prefix":"##","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}}`,
			Options{MaxTokens: 8}, fault.ModelRefused, "the tokenizer panicked: "},
		{"a template that repeats the text", string(withField(t, real, "post_processor",
			`{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{}}`)),
			Options{MaxTokens: 8}, fault.ModelRefused, "does not take a text once"},
		{"no limit", string(real), Options{}, fault.Usage, "limit of 0 tokens"},
		{"no room for a text", string(real), Options{MaxTokens: 2}, fault.Usage, "alone are 2"},
		{"no room beside the prompt", string(real), Options{MaxTokens: 4, Prompt: "hello world "}, fault.Usage, "alone are 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open([]byte(tt.json), tt.o)
			if !fault.Is(err, tt.class) || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %v, want class %s and %q", err, tt.class, tt.say)
			}
		})
	}
}

func miniLMJSON(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Model(t), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func miniLM(t testing.TB, o Options) *Tokenizer {
	t.Helper()
	return open(t, miniLMJSON(t), o)
}

func open(t testing.TB, tokenizerJSON []byte, o Options) *Tokenizer {
	t.Helper()
	tokenizer, err := Open(tokenizerJSON, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokenizer.Close)
	return tokenizer
}

// encode encodes all texts, in their order.
func encode(t testing.TB, tokenizer *Tokenizer, texts *column.Arena, out *Tokens) {
	t.Helper()
	docs := make([]int32, texts.Len())
	for i := range docs {
		docs[i] = int32(i)
	}
	if err := tokenizer.Encode(context.Background(), texts, docs, out); err != nil {
		t.Fatal(err)
	}
}
