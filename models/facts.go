package models

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Fact is one thing that is known about a model, and the file or flag that said it.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // a file of the folder, a flag, or how it follows from others
}

// fact notes a value and where it came from.
func (m *Model) fact(name, from, format string, args ...any) {
	m.Facts = append(m.Facts, Fact{Name: name, Value: fmt.Sprintf(format, args...), From: filepath.ToSlash(from)})
}

// architectureFacts tells what the weights are and compute.
func (m *Model) architectureFacts(p pipeline, c config, w weights) {
	conf := filepath.Join(p.transformer, "config.json")
	m.fact("architecture", conf, "%s", c.ModelType)
	if b, ok := w.source.(*built); ok {
		m.fact("layers", conf, "%d", b.count)
		m.fact("hidden size", conf, "%d", b.hidden)
		m.fact("attention heads", conf, "%d", b.heads)
		m.fact("feed-forward size", conf, "%d", b.inner)
		m.fact("activation", conf, "%s", b.act)
		m.fact("positions", conf, "%d", b.positions)
	} else if w.dim > 0 {
		m.fact("hidden size", w.files[0], "%d", w.dim)
	}
	m.fact("vocabulary", conf, "%d", m.VocabSize)
	m.fact("weights", strings.Join(w.files, ", "), "%s, %d bytes", w.kind, w.disk)
	m.fact("FLOPs per token", "the linear layers", "%s", strconv.FormatFloat(m.FLOPsPerToken, 'f', 0, 64))
	if len(c.OwnCode) > 0 {
		m.warn("config.json names code of its own (auto_map), which is never run: the architecture %q is built as published", c.ModelType)
	}
}
