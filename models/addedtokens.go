package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// addedToken is a token that is found in a text before anything else is done with it, as
// tokenizer.json has it.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// UnmarshalJSON takes a token as a string, which makes it special, or as an object.
func (t *addedToken) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		t.Special = true
		return json.Unmarshal(b, &t.Content)
	}
	type plain addedToken
	object := struct {
		*plain
		Normalized *bool `json:"normalized"`
	}{plain: (*plain)(t)}
	err := json.Unmarshal(b, &object)
	t.Normalized = or(object.Normalized, !t.Special)
	return err
}

// Files that added tokens stood in before tokenizer_config.json had them.
const (
	specialTokensFile = "special_tokens_map.json"
	addedTokensFile   = "added_tokens.json"
)

// The setting with further special tokens, and its old name.
const (
	extraTokens    = "extra_special_tokens"
	oldExtraTokens = "additional_special_tokens"
)

// namedTokens are the settings of tokenizer_config.json that name a special token, in the
// order in which transformers adds those that are missing.
var namedTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// tokenizerSettings reads tokenizer_config.json. Where it has no added_tokens_decoder, as
// in folders of old versions, what special_tokens_map.json says counts instead.
func (f *folder) tokenizerSettings(sub string) (map[string]json.RawMessage, error) {
	settings := map[string]json.RawMessage{}
	if _, err := f.json(filepath.Join(sub, "tokenizer_config.json"), &settings); err != nil {
		return nil, err
	}
	if _, there := settings["added_tokens_decoder"]; there {
		return settings, nil
	}
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]json.RawMessage{}
	}
	if old := settings[oldExtraTokens]; given(old) && !given(settings[extraTokens]) {
		settings[extraTokens] = old
	}
	delete(settings, oldExtraTokens)
	var special map[string]json.RawMessage
	if _, err := f.json(filepath.Join(sub, specialTokensFile), &special); err != nil {
		return nil, err
	}
	for key, value := range special {
		switch {
		case !given(value):
		case key == extraTokens:
			settings[key] = joined(settings[key], value)
		default:
			settings[key] = value
		}
	}
	return settings, nil
}

// joined is b behind a where both are lists, else b.
func joined(a, b json.RawMessage) json.RawMessage {
	var first, last []json.RawMessage
	if json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &last) == nil {
		if both, err := json.Marshal(append(first, last...)); err == nil {
			return both
		}
	}
	return b
}

// addTokens makes the added tokens of a tokenizer.json what transformers 5 makes of them, by
// all the files that can name one, and reports whether they changed. known is the class,
// which begins with none, nil where the file is taken as it is.
func (f *folder) addTokens(sub string, settings, t map[string]json.RawMessage, known *tokenizerClass) (changed bool, err error) {
	rel := filepath.Join(sub, "tokenizer.json")
	wrong := func(where string, err error) error { return f.refuse(where, "its tokens cannot be read: %v", err) }
	var file []addedToken
	if given(t["added_tokens"]) {
		if err := json.Unmarshal(t["added_tokens"], &file); err != nil {
			return false, wrong(rel, err)
		}
	}
	confRel := filepath.Join(sub, "tokenizer_config.json")
	named, extra, err := special(settings, known)
	if err != nil {
		return false, wrong(confRel, err)
	}
	declared, err := f.declared(sub, settings, file, named, extra)
	if err != nil {
		return false, err
	}
	var list []addedToken
	if known == nil {
		list = slices.Clone(file)
	}
	at := func(content string) int {
		return slices.IndexFunc(list, func(t addedToken) bool { return t.Content == content })
	}
	for _, token := range declared {
		i := at(token.Content)
		if i >= 0 {
			token.ID = list[i].ID
			if token == list[i] {
				continue
			}
		}
		token.Special = token.Special || slices.ContainsFunc(named, func(n addedToken) bool { return n.Content == token.Content })
		if i >= 0 {
			list[i] = token
		} else {
			list = append(list, token)
		}
	}
	for _, token := range append(named, extra...) {
		if at(token.Content) < 0 && token.Content != "" {
			list = append(list, token)
		}
	}
	if err := number(list, file, t["model"]); err != nil {
		return false, wrong(rel, err)
	}
	if reflect.DeepEqual(list, file) || len(list)+len(file) == 0 {
		return false, nil
	}
	t["added_tokens"], err = json.Marshal(list)
	return true, err
}

// special are the special tokens that settings name, with the class's own where they do
// not, and further ones.
func special(settings map[string]json.RawMessage, known *tokenizerClass) (named, extra []addedToken, err error) {
	add := func(to *[]addedToken, raw json.RawMessage) {
		var t addedToken
		if e := json.Unmarshal(raw, &t); e != nil {
			err = e
		}
		t.Special, t.Normalized = true, t.Normalized && len(raw) > 0 && raw[0] == '{'
		*to = append(*to, t)
	}
	for _, key := range namedTokens {
		if raw, there := settings[key]; there {
			if given(raw) {
				add(&named, raw)
				if raw[0] == '"' && key == "mask_token" && known != nil {
					named[len(named)-1].LStrip = known.maskStrips
				}
			}
		} else if known != nil && known.special[key] != "" {
			named = append(named, addedToken{Content: known.special[key], LStrip: key == "mask_token" && known.maskStrips, Special: true})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if strings.HasSuffix(key, "_token") && !slices.Contains(namedTokens, key) && strings.HasPrefix(string(settings[key]), `"`) {
			add(&named, settings[key])
		}
	}
	raw := settings[extraTokens]
	if !given(raw) || string(raw) == "[]" {
		raw = settings[oldExtraTokens]
	}
	if !given(raw) {
		if known != nil {
			for _, content := range known.extra {
				extra = append(extra, addedToken{Content: content, Special: true})
			}
		}
		return named, extra, err
	}
	var byName map[string]json.RawMessage
	if json.Unmarshal(raw, &byName) == nil {
		for _, key := range slices.Sorted(maps.Keys(byName)) {
			add(&named, byName[key])
		}
		return named, extra, err
	}
	var list []json.RawMessage
	if e := json.Unmarshal(raw, &list); e != nil {
		return nil, nil, e
	}
	for _, one := range list {
		add(&extra, one)
	}
	return named, extra, err
}

// declared are the tokens that are declared with their ids, in the order of these:
// added_tokens_decoder, or in its absence the old file and tokenizer.json's own.
func (f *folder) declared(sub string, settings map[string]json.RawMessage, file, named, extra []addedToken) ([]addedToken, error) {
	byID := map[int]addedToken{}
	if raw, there := settings["added_tokens_decoder"]; there {
		var decoder map[string]addedToken
		rel := filepath.Join(sub, "tokenizer_config.json")
		if err := json.Unmarshal(raw, &decoder); err != nil {
			return nil, f.refuse(rel, "its added_tokens_decoder cannot be read: %v", err)
		}
		for key, token := range decoder {
			id, err := strconv.Atoi(key)
			if err != nil {
				return nil, f.refuse(rel, "its added_tokens_decoder has the id %.20q", key)
			}
			token.ID = id
			byID[id] = token
		}
	} else {
		var old map[string]int
		if _, err := f.json(filepath.Join(sub, addedTokensFile), &old); err != nil {
			return nil, err
		}
		for content, id := range old {
			is := slices.ContainsFunc(append(slices.Clone(named), extra...), func(t addedToken) bool { return t.Content == content })
			byID[id] = addedToken{ID: id, Content: content, Normalized: !is, Special: is}
		}
		for _, token := range file {
			byID[token.ID] = token
		}
	}
	var tokens []addedToken
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		tokens = append(tokens, byID[id])
	}
	return tokens, nil
}

// number gives tokens that are new in the file the ids that they get: those of the model's
// vocabulary, or the next free ones.
func number(list, file []addedToken, model json.RawMessage) error {
	var vocabulary map[string]float64
	next := 0
	for i := range list {
		if j := slices.IndexFunc(file, func(t addedToken) bool { return t.Content == list[i].Content }); j >= 0 {
			list[i].ID = file[j].ID
			next = max(next, list[i].ID+1)
			continue
		}
		if vocabulary == nil {
			var err error
			if vocabulary, err = idsOf(model); err != nil {
				return err
			}
			for _, id := range vocabulary {
				next = max(next, int(id)+1)
			}
		}
		if id, there := vocabulary[list[i].Content]; there {
			list[i].ID = int(id)
			continue
		}
		list[i].ID = next
		next++
	}
	return nil
}

// idsOf are the ids of a model's vocabulary, which is an object, or a list of pieces.
func idsOf(model json.RawMessage) (map[string]float64, error) {
	var m struct {
		Vocab json.RawMessage `json:"vocab"`
	}
	if !given(model) || json.Unmarshal(model, &m) != nil {
		return map[string]float64{}, nil // the tokenizer says what is wrong with it
	}
	ids := map[string]float64{}
	if json.Unmarshal(m.Vocab, &ids) == nil {
		return ids, nil
	}
	var pieces [][]any
	if err := json.Unmarshal(m.Vocab, &pieces); err != nil {
		return nil, fmt.Errorf("the vocabulary is neither an object nor a list of pieces")
	}
	for i, p := range pieces {
		if len(p) > 0 {
			if content, ok := p[0].(string); ok {
				ids[content] = float64(i)
			}
		}
	}
	return ids, nil
}
