package models

import (
	"encoding/json"
	"strings"
)

// tokenizerConfig is what decides ids in tokenizer_config.json: settings of a
// class, of which each class knows some.
type tokenizerConfig struct {
	Class          string     `json:"tokenizer_class"`
	TruncationSide string     `json:"truncation_side"`
	SplitSpecial   bool       `json:"split_special_tokens"`
	Versions       []string   `json:"fast_tokenizer_files"`
	Inputs         []string   `json:"model_input_names"`
	Lower          *bool      `json:"do_lower_case"`
	StripAccents   *bool      `json:"strip_accents"`
	Ideographs     *bool      `json:"tokenize_chinese_chars"`
	KeepAccents    *bool      `json:"keep_accents"`
	PrefixSpace    *bool      `json:"add_prefix_space"`
	CLS            *tokenName `json:"cls_token"`
	SEP            *tokenName `json:"sep_token"`
	BOS            *tokenName `json:"bos_token"`
	EOS            *tokenName `json:"eos_token"`
	UNK            *tokenName `json:"unk_token"`
}

// tokenName is a special token, given as a string or as an object.
type tokenName string

func (t *tokenName) UnmarshalJSON(b []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &object)
		*t = tokenName(object.Content)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// object is a part of tokenizer.json.
type object = map[string]any

// tokenizerClass is a class of transformers that takes the vocabulary and the
// added tokens of tokenizer.json, and makes all else anew.
type tokenizerClass struct {
	model        string // the type of tokenizer.json's model
	settings     func(c tokenizerConfig) object
	normalizer   func(c tokenizerConfig, charsmap any) any
	preTokenizer func(c tokenizerConfig) object
	ends         func(c tokenizerConfig) (first, last string) // nil where the file says what is put around a text
	special      map[string]string                            // tokens by the settings that would name others
	maskStrips   bool                                         // the mask takes the space before it
	extra        []string                                     // further special tokens
}

// classes are the classes of the architectures that are built, without the Fast
// at the end of their names.
var classes = map[string]tokenizerClass{
	"BertTokenizer":       bertClass("[CLS]", "[SEP]", bracketed),
	"DistilBertTokenizer": bertClass("[CLS]", "[SEP]", bracketed),
	"ElectraTokenizer":    bertClass("[CLS]", "[SEP]", bracketed),
	"MPNetTokenizer":      mpnetClass(),
	"RobertaTokenizer":    robertaClass(),
	"XLMRobertaTokenizer": pieceClass(3.0, onlyCharsmap),
	"CamembertTokenizer":  camembertClass(),
	"AlbertTokenizer":     albertClass(),
	"Qwen2Tokenizer":      qwenClass(),
}

// aliases are other names of the same classes.
var aliases = map[string]string{
	"ConvBertTokenizer": "BertTokenizer", "MobileBertTokenizer": "BertTokenizer", "SqueezeBertTokenizer": "BertTokenizer", "LxmertTokenizer": "BertTokenizer",
	"LayoutLMTokenizer": "BertTokenizer", "DPRContextEncoderTokenizer": "BertTokenizer", "DPRQuestionEncoderTokenizer": "BertTokenizer",
	"BartTokenizer": "RobertaTokenizer", "LEDTokenizer": "RobertaTokenizer", "LongformerTokenizer": "RobertaTokenizer", "MvpTokenizer": "RobertaTokenizer",
}

// otherClasses are those that make something of tokenizer.json too, or do not read it; a
// name that transformers does not know takes the file as it is.
var otherClasses = strings.Fields(`Barthez BertGeneration BertJapanese Bertweet BigBird BioGpt Bartpho Blenderbot BlenderbotSmall ByT5 CLIP CTRL Canine CodeGen CodeLlama
	Cohere Cpm CpmAnt DPRReader Deberta DebertaV2 Dia Esm Esmc FNet FSMT Flaubert Funnel GPT2 GPTNeoX GPTNeoXJapanese GPTSw3 Gemma Herbert Lasr LayoutLMv2 LayoutLMv3
	LayoutXLM Llama Luke M2M100 MBart MBart50 MLuke Marian MarkupLM MyT5 Nllb Nougat OpenAIGPT PLBart Pegasus Perceiver Phobert ProphetNet Qwen3_5 Reformer RemBert
	RoCBert RoFormer SeamlessM4T Siglip Siglip2 Speech2Text SpeechT5 Splinter T5 Tapas Tipsv2 Udop VideoPrism Whisper XGLM XLM XLNet`)

// classOf is the class used where tokenizer_config.json names none.
var classOf = map[string]string{
	"bert": "BertTokenizer", "distilbert": "BertTokenizer", "electra": "BertTokenizer", "nomic_bert": "BertTokenizer",
	"mpnet": "MPNetTokenizer", "roberta": "RobertaTokenizer", "xlm-roberta": "XLMRobertaTokenizer",
	"camembert": "CamembertTokenizer", "albert": "AlbertTokenizer",
	"qwen3": "Qwen2Tokenizer",
}

// sevenTokens are the special tokens of a class by the settings that would name others.
func sevenTokens(tokens ...string) map[string]string {
	m := map[string]string{}
	for i, key := range namedTokens {
		m[key] = tokens[i]
	}
	return m
}

var (
	bracketed = sevenTokens("", "", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")
	angled    = sevenTokens("<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>")
)

func mpnetClass() tokenizerClass {
	class := bertClass("<s>", "</s>", sevenTokens("<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"))
	class.maskStrips = true
	return class
}

func camembertClass() tokenizerClass {
	class := pieceClass(nil, onlyCharsmap)
	class.maskStrips, class.extra = true, []string{"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}
	return class
}

func name(t *tokenName, otherwise string) string { return string(or(t, tokenName(otherwise))) }

func bertClass(first, last string, specials map[string]string) tokenizerClass {
	return tokenizerClass{
		model: "WordPiece",
		settings: func(c tokenizerConfig) object {
			return object{"unk_token": name(c.UNK, "[UNK]"), "continuing_subword_prefix": "##", "max_input_chars_per_word": 100.0}
		},
		normalizer: func(c tokenizerConfig, _ any) any {
			n := object{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": or(c.Ideographs, true),
				"strip_accents": nil, "lowercase": or(c.Lower, true)}
			if c.StripAccents != nil {
				n["strip_accents"] = *c.StripAccents
			}
			return n
		},
		preTokenizer: func(tokenizerConfig) object { return object{"type": "BertPreTokenizer"} },
		ends:         func(c tokenizerConfig) (string, string) { return name(c.CLS, first), name(c.SEP, last) },
		special:      specials,
	}
}

func robertaClass() tokenizerClass {
	return tokenizerClass{
		model: "BPE",
		settings: func(tokenizerConfig) object {
			return object{"dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
				"fuse_unk": nil, "byte_fallback": nil, "ignore_merges": nil}
		},
		normalizer: func(tokenizerConfig, any) any { return nil },
		preTokenizer: func(c tokenizerConfig) object {
			return object{"type": "ByteLevel", "add_prefix_space": or(c.PrefixSpace, false), "trim_offsets": true, "use_regex": true}
		},
		ends:    func(c tokenizerConfig) (string, string) { return name(c.CLS, "<s>"), name(c.SEP, "</s>") },
		special: angled,
	}
}

// pieceClass is one of SentencePiece's Unigram; without an unknown id, the file's stays.
func pieceClass(unknown any, normalizer func(tokenizerConfig, any) any) tokenizerClass {
	return tokenizerClass{
		model: "Unigram",
		settings: func(tokenizerConfig) object {
			s := object{"byte_fallback": nil}
			if unknown != nil {
				s["unk_id"] = unknown
			}
			return s
		},
		normalizer: normalizer,
		preTokenizer: func(c tokenizerConfig) object {
			scheme := "always"
			if !or(c.PrefixSpace, true) {
				scheme = "never"
			}
			return object{"type": "Sequence", "pretokenizers": []any{object{"type": "WhitespaceSplit"},
				object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true}}}
		},
		ends:    func(c tokenizerConfig) (string, string) { return name(c.BOS, "<s>"), name(c.EOS, "</s>") },
		special: angled,
	}
}

func onlyCharsmap(_ tokenizerConfig, charsmap any) any { return charsmap }

func albertClass() tokenizerClass {
	class := pieceClass(1.0, func(c tokenizerConfig, charsmap any) any {
		replace := func(quotes string) object {
			return object{"type": "Replace", "pattern": object{"String": quotes}, "content": `"`}
		}
		steps := []any{replace("``"), replace("''")}
		if !or(c.KeepAccents, false) {
			steps = append(steps, object{"type": "NFKD"}, object{"type": "StripAccents"})
		}
		if or(c.Lower, true) {
			steps = append(steps, object{"type": "Lowercase"})
		}
		if charsmap != nil {
			steps = append(steps, charsmap)
		}
		return object{"type": "Sequence", "normalizers": steps}
	})
	class.ends = func(c tokenizerConfig) (string, string) { return name(c.CLS, "[CLS]"), "[SEP]" }
	class.special = sevenTokens("[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]")
	return class
}

// qwenPieces is how the class splits a text before its merges.
const qwenPieces = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

func qwenClass() tokenizerClass {
	return tokenizerClass{
		model: "BPE",
		settings: func(tokenizerConfig) object {
			return object{"dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
				"fuse_unk": nil, "byte_fallback": nil, "ignore_merges": nil}
		},
		normalizer: func(tokenizerConfig, any) any { return object{"type": "NFC"} },
		preTokenizer: func(c tokenizerConfig) object {
			return object{"type": "Sequence", "pretokenizers": []any{
				object{"type": "Split", "pattern": object{"Regex": qwenPieces}, "behavior": "Isolated", "invert": false},
				object{"type": "ByteLevel", "add_prefix_space": or(c.PrefixSpace, false), "trim_offsets": true, "use_regex": false}}}
		},
		special: sevenTokens("", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>", "", ""),
	}
}
