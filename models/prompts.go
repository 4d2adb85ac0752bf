package models

import (
	"encoding/json"
	"path/filepath"
	"sort"
	"strings"

	"localembed/internal/fault"
)

const promptsFile = "config_sentence_transformers.json"

type promptsConfig struct {
	Prompts     map[string]*string `json:"prompts"`
	TruncateDim *int               `json:"truncate_dim"`
}

// prompt sets what is put before each text: what the caller gave, else the
// folder's first non-empty prompt named document, passage or corpus, or for
// queries the one named query.
func (m *Model) prompt(f *folder, o Options, p pipeline) error {
	var c promptsConfig
	if _, err := f.json(promptsFile, &c); err != nil {
		return err
	}
	text, from := "", "no prompt is named document, passage or corpus"
	switch {
	case o.Prompt != nil && o.PromptName != "":
		return fault.New(fault.Usage, "--prompt and --prompt-name exclude each other").Hinting("give one of them")
	case o.Prompt != nil:
		text, from = *o.Prompt, "--prompt"
	case o.PromptName != "":
		named, ok := c.Prompts[o.PromptName]
		if !ok || named == nil {
			return fault.New(fault.Usage, "the folder has no prompt named %q", o.PromptName).In(f.path(promptsFile)).
				Hinting("%s", c.hint())
		}
		text, from = *named, promptsFile+", "+o.PromptName
	default:
		names := []string{"document", "passage", "corpus"}
		if o.Query {
			names, from = []string{"query"}, "no prompt is named query"
		}
		for _, name := range names {
			if named := c.Prompts[name]; named != nil && *named != "" {
				text, from = *named, promptsFile+", "+name
				if name == "passage" || name == "corpus" {
					// It writes an empty prompt named document into every folder, and finds that first.
					m.warn("each text gets the folder's prompt %q, as the model's author means it; sentence-transformers 6.2 would put nothing before a document", name)
				}
				break
			}
		}
	}
	m.Recipe.Prompt = text
	m.fact("prompt", from, "%q", text)
	if text == "" || !p.leaveOutPrompt {
		return nil
	}
	return m.leaveOut(f, o, p, text)
}

// leaveOut counts the tokens of the prompt, which the pooling leaves out: those
// of the prompt alone, without a special token at the end.
func (m *Model) leaveOut(f *folder, o Options, p pipeline, prompt string) error {
	if o.Tokenize == nil {
		return f.refuse(p.poolingRel, "it leaves the prompt's tokens out of the pooling (include_prompt is false), which is not supported here").
			Hinting("give --prompt '' to embed without a prompt, if that is what you want")
	}
	ids, err := o.Tokenize(m.TokenizerJSON, prompt)
	if err != nil {
		return err
	}
	var t struct {
		Added []struct {
			ID      uint32 `json:"id"`
			Special bool   `json:"special"`
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(m.TokenizerJSON, &t); err != nil {
		return f.refuse(filepath.Join(p.transformer, "tokenizer.json"), "its added_tokens cannot be read: %v", err)
	}
	n := len(ids)
	for _, a := range t.Added {
		if n > 0 && a.Special && a.ID == ids[n-1] {
			n--
			break
		}
	}
	m.head.skip = n
	m.fact("tokens left out of the pooling", p.poolingRel, "%d, those of the prompt", n)
	return nil
}

// hint names the prompts that are there.
func (c promptsConfig) hint() string {
	var names []string
	for name, text := range c.Prompts {
		if text != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "it has none at all: give the text itself with --prompt"
	}
	sort.Strings(names)
	return "it has these: " + strings.Join(names, ", ")
}

// truncateDim is how many components the folder keeps of a vector, 0 for all.
func (f *folder) truncateDim() (int, error) {
	var c promptsConfig
	if _, err := f.json(promptsFile, &c); err != nil {
		return 0, err
	}
	if c.TruncateDim == nil {
		return 0, nil
	}
	if *c.TruncateDim < 1 {
		return 0, f.refuse(promptsFile, "truncate_dim is %d", *c.TruncateDim)
	}
	return *c.TruncateDim, nil
}
