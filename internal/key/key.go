// Package key holds the identity of a vector: the recipe, which is a model and
// everything else that changes a vector, and the content key, which is the
// SHA-256 of recipe and text. It knows nothing of files or devices.
//
// # Content key
//
//	SHA-256( field(version) field(model digest) field(pooling) field(normalize)
//	         field(prompt) field(max tokens) field(dims) field(precision) field(text) )
//
// where field(x) is the length of x in bytes as a little-endian uint64 followed
// by x; numbers and booleans are fields of their decimal or true/false spelling.
// Length prefixes make it impossible for two different recipes or texts to
// hash the same bytes. There is never a name, a path, a revision or a time in it.
package key

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// Version is the key version. It is raised only when localembed's vectors
// leave the tolerance of promise P1 for an unchanged recipe.
const Version = 1

// Size is the size of a content key in bytes.
const Size = sha256.Size

// Key is a content key.
type Key [Size]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Recipe is a model and all that changes a vector. Its JSON form stands in
// job.json, in every shard's footer and in the report.
type Recipe struct {
	ModelDigest string `json:"model_digest"` // hex SHA-256 over every file that decides a vector
	Pooling     string `json:"pooling"`      // cls, mean, max …; "none" where the graph pools itself
	Normalize   bool   `json:"normalize"`
	Prompt      string `json:"prompt"`     // put before each text as it is; "" is none
	MaxTokens   int    `json:"max_tokens"` // special tokens and prompt included
	Dims        int    `json:"dims"`       // length of a vector
	Precision   string `json:"precision"`  // fp32 or fp16
}

// prefix is everything that is hashed before the text.
func (r Recipe) prefix() []byte {
	var b []byte
	for _, s := range []string{
		strconv.Itoa(Version), r.ModelDigest, r.Pooling, strconv.FormatBool(r.Normalize),
		r.Prompt, strconv.Itoa(r.MaxTokens), strconv.Itoa(r.Dims), r.Precision,
	} {
		b = AppendField(b, []byte(s))
	}
	return b
}

// Digest identifies the recipe alone.
func (r Recipe) Digest() [Size]byte { return sha256.Sum256(r.prefix()) }

// AppendField appends one length-prefixed field.
func AppendField(b, field []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(field)))
	return append(b, field...)
}

// Hasher makes the content keys of one recipe. It may be used by one
// goroutine at a time; Clone gives another goroutine its own.
type Hasher struct {
	prefix []byte
	buf    []byte
}

// NewHasher makes a Hasher for a recipe.
func NewHasher(r Recipe) *Hasher { return &Hasher{prefix: r.prefix()} }

// Clone makes a Hasher for another goroutine.
func (h *Hasher) Clone() *Hasher { return &Hasher{prefix: h.prefix} }

// Key is the content key of a text: its raw bytes, neither trimmed nor normalized.
func (h *Hasher) Key(text []byte) Key {
	h.buf = append(h.buf[:0], h.prefix...)
	h.buf = binary.LittleEndian.AppendUint64(h.buf, uint64(len(text)))
	if len(text) <= 1<<16 {
		h.buf = append(h.buf, text...)
		return sha256.Sum256(h.buf)
	}
	// A long text is hashed in place rather than copied.
	d := sha256.New()
	d.Write(h.buf)
	d.Write(text)
	var k Key
	d.Sum(k[:0])
	return k
}
