package models

import (
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
	text := ""
	switch {
	case o.Prompt != nil && o.PromptName != "":
		return fault.New(fault.Usage, "--prompt and --prompt-name exclude each other").Hinting("give one of them")
	case o.Prompt != nil:
		text = *o.Prompt
	case o.PromptName != "":
		named, ok := c.Prompts[o.PromptName]
		if !ok || named == nil {
			return fault.New(fault.Usage, "the folder has no prompt named %q", o.PromptName).In(f.path(promptsFile)).
				Hinting("%s", c.hint())
		}
		text = *named
	default:
		names := []string{"document", "passage", "corpus"}
		if o.Query {
			names = []string{"query"}
		}
		for _, name := range names {
			if named := c.Prompts[name]; named != nil && *named != "" {
				text = *named
				if name == "passage" || name == "corpus" {
					// It writes an empty prompt named document into every folder, and finds that first.
					m.warn("each text gets the folder's prompt %q, as the model's author means it; sentence-transformers 6.2 would put nothing before a document", name)
				}
				break
			}
		}
	}
	if text != "" && p.leaveOutPrompt {
		return f.refuse(p.poolingConfigRel, "it leaves the prompt's tokens out of the pooling (include_prompt is false), which is not supported").
			Hinting("give --prompt '' to embed without a prompt, if that is what you want")
	}
	m.Recipe.Prompt = text
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
