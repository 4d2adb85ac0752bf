package tokenize

// #cgo LDFLAGS: -L${SRCDIR}/../../.cache/lib -ltokenizers -ldl -lm -lpthread
// #include "native.h"
import "C"

import (
	"errors"
	"runtime"
	"unsafe"

	"localembed/internal/column"
)

// native is a tokenizer loaded by the Rust library. It may be used by several
// goroutines at once.
type native struct {
	handle unsafe.Pointer
	long   unsafe.Pointer // for long texts in parts, nil where they are taken whole
}

// facts is what the library knows of a loaded tokenizer.
type facts struct {
	vocab int // largest id, plus one
	head  int // special tokens put before every text
	tail  int // special tokens put after every text
}

func loadNative(tokenizerJSON []byte) (*native, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	message := make([]byte, 512)
	pin.Pin(&message[0])
	out := C.struct_localembed_ids{message: (*C.uint8_t)(&message[0]), message_room: C.size_t(len(message))}
	handle := C.localembed_load((*C.uint8_t)(unsafe.SliceData(tokenizerJSON)), C.size_t(len(tokenizerJSON)), &out)
	if handle == nil {
		return nil, errors.New(string(message[:out.message_len]))
	}
	return &native{handle: handle}, nil
}

// prepareParts makes ready for long texts in parts. It is called once.
func (n *native) prepareParts(p parts) {
	if p.allowed {
		n.long = C.localembed_long(n.handle, C.bool(p.small), C.bool(p.letters))
	}
}

func (n *native) close() {
	C.localembed_free_long(n.long)
	C.tokenizers_free_tokenizer(n.handle)
	n.handle, n.long = nil, nil
}

func (n *native) describe() (facts, error) {
	var f C.struct_localembed_facts
	if !C.localembed_describe(n.handle, &f) {
		return facts{}, errors.New("its post-processor does not take a text once")
	}
	return facts{int(f.vocab_size), int(f.head), int(f.tail)}, nil
}

// limits is what each text is encoded with.
type limits struct {
	prompt     string
	maxTokens  int
	firstBytes int // of a long text, tokenized first
	tail       int
	cuts       cuts
	whole      bool // long texts are not taken in parts
}

// chunk is the result of one call: flat ids of consecutive documents.
type chunk struct {
	ids       []uint32
	ends      []int64
	truncated []bool
	work      int // bytes that were tokenized, some of them more than once
}

// encode fills out with texts docs[0], docs[1], … and returns how many it
// encoded; if fewer than asked, the error says what was wrong with the next one.
// out has room for len(docs) documents of maxTokens.
func (n *native) encode(l limits, texts *column.Arena, docs []int32, out *chunk) (int, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	message := make([]byte, 512)
	prompt := unsafe.StringData(l.prompt)
	data := unsafe.SliceData(texts.Data)
	for _, p := range []any{&message[0], &texts.Ends[0], &docs[0], &out.ids[0], &out.ends[0], &out.truncated[0]} {
		pin.Pin(p)
	}
	cl := C.struct_localembed_limits{
		max_tokens:  C.size_t(l.maxTokens),
		first_bytes: C.size_t(l.firstBytes),
		tail:        C.size_t(l.tail),
		cuts:        l.cuts.native(),
	}
	if !l.whole {
		cl.longs = n.long
	}
	if len(l.prompt) > 0 {
		pin.Pin(prompt)
		cl.prompt, cl.prompt_len = (*C.uint8_t)(prompt), C.size_t(len(l.prompt))
	}
	ct := C.struct_localembed_texts{
		ends:  (*C.int64_t)(&texts.Ends[0]),
		docs:  (*C.int32_t)(&docs[0]),
		count: C.size_t(len(docs)),
	}
	if len(texts.Data) > 0 {
		pin.Pin(data)
		ct.data = (*C.uint8_t)(data)
	}
	co := C.struct_localembed_ids{
		ids:          (*C.uint32_t)(&out.ids[0]),
		ends:         (*C.int64_t)(&out.ends[0]),
		truncated:    (*C.bool)(&out.truncated[0]),
		message:      (*C.uint8_t)(&message[0]),
		message_room: C.size_t(len(message)),
	}
	done := int(C.localembed_encode(n.handle, &cl, &ct, &co))
	out.work = int(co.work)
	if done < len(docs) {
		return done, errors.New(string(message[:co.message_len]))
	}
	return done, nil
}

func (c cuts) native() C.struct_localembed_cuts {
	var n C.struct_localembed_cuts
	for b, ok := range c.before {
		if ok {
			n.before[b] = 1
		}
	}
	if c.beforeIdeograph {
		n.before_ideograph = 1
	}
	n.run_end = C.uint32_t(c.runEnd)
	return n
}
