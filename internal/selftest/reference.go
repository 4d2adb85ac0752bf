package selftest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"localembed/internal/fault"
	"localembed/internal/key"
)

// ReferenceFile is the name of the file with reference vectors in a model folder.
const ReferenceFile = "localembed.reference.json"

// maxReference is the largest reference file that is read, in bytes.
const maxReference = 64 << 20

// Reference holds texts and the vectors that a model must give for them. Only
// texts and calls are required; what is absent is not compared.
type Reference struct {
	Texts        []string        `json:"texts"`
	MinCosine    float64         `json:"min_cosine"`     // 0 is 0.9999
	MaxSeqLength int             `json:"max_seq_length"` // tokens at which texts were cut
	Options      json.RawMessage `json:"match_with_options"`
	Calls        []Call          `json:"calls"`

	path    string
	lengths bool // vectors' lengths are compared, not only their directions
}

// Call is one way of embedding the texts: with a prompt, cut, normalized.
type Call struct {
	Call       string          `json:"call"` // encode, encode_document, encode_query
	Args       json.RawMessage `json:"args"`
	Prompt     string          `json:"prompt_text"`
	Normalized bool            `json:"normalized"`
	Tokens     []int           `json:"n_tokens"`
	Truncated  []bool          `json:"truncated"`
	IDs        [][]int64       `json:"input_ids"`
	Embeddings [][]float64     `json:"embeddings"`
}

// Match says how well the reference was met.
type Match struct {
	Texts     int     `json:"texts"`
	MinCosine float64 `json:"min_cosine"`
}

// FindReference reads a folder's reference vectors for a recipe: the calls with its
// prompt and its dimensions, if their texts were cut at its limit. It is nil where the folder
// has none. An error is of class model_refused.
func FindReference(dir string, r key.Recipe) (*Reference, error) {
	ref, err := ReadReference(filepath.Join(dir, ReferenceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if ref.MaxSeqLength != 0 && ref.MaxSeqLength != r.MaxTokens {
		return nil, nil
	}
	ref.Calls = slices.DeleteFunc(ref.Calls, func(c Call) bool {
		return c.Prompt != r.Prompt || len(c.Embeddings[0]) != r.Dims || c.Normalized && !r.Normalize
	})
	if len(ref.Calls) == 0 {
		return nil, nil
	}
	// Several calls with one prompt have the same directions.
	ref.Calls, ref.lengths = ref.Calls[:1], !r.Normalize
	if r.Precision == "fp16" {
		ref.MinCosine = min(ref.MinCosine, halfCosine)
	}
	return ref, nil
}

// halfCosine is as near as fp16 has to come to vectors in fp32.
const halfCosine = 0.999

// ReadReference reads a reference file.
func ReadReference(path string) (*Reference, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxReference+1))
	if err != nil {
		return nil, err
	}
	ref := &Reference{path: path}
	if len(b) > maxReference {
		return nil, ref.refuse("the file has more than %d MB", maxReference>>20)
	}
	if err := json.Unmarshal(b, ref); err != nil {
		return nil, ref.refuse("it cannot be read: %v", err)
	}
	if ref.MinCosine == 0 {
		ref.MinCosine = 0.9999
	}
	for i, c := range ref.Calls {
		n := len(ref.Texts)
		if n == 0 || len(c.Embeddings) != n || c.Tokens != nil && len(c.Tokens) != n ||
			c.Truncated != nil && len(c.Truncated) != n || c.IDs != nil && len(c.IDs) != n {
			return nil, ref.refuse("call %d has not one entry for each of the %d texts", i, n)
		}
		for _, v := range c.Embeddings {
			if len(v) != len(c.Embeddings[0]) {
				return nil, ref.refuse("call %d has vectors of different lengths", i)
			}
		}
	}
	return ref, nil
}

func (ref *Reference) refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.ModelRefused, format, args...).In(ref.path).
		Hinting("correct the file or take it away: it says which vectors the model must give")
}
