package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"localembed/internal/backfill"
	"localembed/internal/column"
	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/search"
	"localembed/internal/tokenize"
	"localembed/models"
)

// queryFlags are the flags of query.
type queryFlags struct {
	model, ortLib string
	top           int
	json          bool
}

func newQuery() *cobra.Command {
	var f queryFlags
	c := &cobra.Command{
		Use:   "query OUT TEXT",
		Short: "Print the texts of a finished job that are nearest to a text",
		Long: `Embed TEXT with the job's model, as a query where the model folder has a prompt
for queries, compare it with every vector in OUT's shards, and print the nearest
texts. Texts come from the kept text column, else from the corpus.`,
		Example: `  localembed query vectors "read a file line by line"`,
		Args:    atLeast(2, "the output folder or the text"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.query(c, args[0], strings.Join(args[1:], " "))
		},
	}
	s := c.Flags()
	s.SortFlags = false
	s.IntVar(&f.top, "top", 5, "print the nearest `N` texts")
	s.StringVar(&f.model, "model", "", "`model`, where it is no longer at the job's path: a folder, or org/name[@revision] of a hub")
	s.StringVar(&f.ortLib, "ort-lib", "", "libonnxruntime `file` (default: as for run)")
	s.BoolVar(&f.json, "json", false, "print the result as JSON")
	return c
}

func (f *queryFlags) query(c *cobra.Command, out, text string) error {
	if f.top < 1 {
		return fault.New(fault.Usage, "--top is %d", f.top).Hinting("give a number above 0")
	}
	job, err := jobOf(out)
	if err != nil {
		return err
	}
	ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), true, f.json)
	vector, err := f.embed(c.Context(), ui, job, text)
	if err != nil {
		return err
	}
	hits, err := search.Nearest(c.Context(), vfs.Default, out, vector, f.top, job.Text)
	if err != nil {
		return err
	}
	if err := fillTexts(c.Context(), job, out, hits); err != nil {
		return err
	}
	if f.json {
		ui.printJSON(hits)
		return nil
	}
	for _, h := range hits {
		name := h.ID
		if name == "" {
			name = fmt.Sprintf("%s row %d", h.File, h.Row)
		}
		_, _ = fmt.Fprintf(ui.stdout, "%.4f  %s\n        %s\n", h.Cosine, name, oneLine(h.Text, 160))
	}
	return nil
}

// embed gives the vector of one text with the job's recipe, but for the prompt.
func (f *queryFlags) embed(ctx context.Context, ui *ui, job *backfill.Job, text string) ([]float32, error) {
	dir, recipe := job.Model, job.Recipe
	if f.model != "" {
		dir = f.model
	}
	o := models.Options{Normalize: &recipe.Normalize, MaxTokens: recipe.MaxTokens, Dims: recipe.Dims, Precision: recipe.Precision, ONNX: job.ONNX, Query: true, Tokenize: tokenize.IDs}
	if recipe.Pooling != "none" {
		o.Pooling = recipe.Pooling
	}
	m, _, err := openModel(ctx, ui, dir, o)
	if err != nil {
		return nil, err
	}
	if m.Recipe.ModelDigest != recipe.ModelDigest {
		return nil, fault.New(fault.ModelRefused, "the folder holds another model than the one that made these vectors").In(dir).
			Hinting("give that model with --model: its folder, or org/name@revision with the model_revision of report.json")
	}
	t, err := tokenize.Open(m.TokenizerJSON, tokenize.Options{MaxTokens: m.Recipe.MaxTokens, Prompt: m.Recipe.Prompt})
	if err != nil {
		return nil, inModel(dir, err)
	}
	defer t.Close()
	var texts column.Arena
	texts.Append([]byte(text))
	var tokens tokenize.Tokens
	if err := t.Encode(ctx, &texts, []int32{0}, &tokens); err != nil {
		return nil, err
	}
	runtime, err := onnx.Load(f.ortLib)
	if err != nil {
		return nil, err
	}
	defer func() { _ = runtime.Close() }()
	s, err := runtime.OpenCPU("cpu:0", m, 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	ids := make([]int64, len(tokens.IDs))
	for i, id := range tokens.IDs {
		ids[i] = int64(id)
	}
	vector := make([]float32, recipe.Dims)
	return vector, s.Run(ids, 1, len(ids), nil, vector)
}

// fillTexts reads the texts that the shards do not hold from the corpus. Where it
// is gone, the hits stay without.
func fillTexts(ctx context.Context, job *backfill.Job, out string, hits []search.Hit) error {
	missing := false
	for _, h := range hits {
		missing = missing || h.Text == nil
	}
	if !missing {
		return nil
	}
	c, err := corpus.Open(ctx, corpus.Options{Args: job.Corpus, Text: job.Text, ID: job.ID, Keep: job.Keep, OutDir: out})
	if err != nil {
		return fault.New(fault.NoSuchFile, "the texts are not in the shards, and the corpus cannot be read: %v", err).
			Hinting("run the query where the corpus is, or make the shards with --keep %s", job.Text)
	}
	defer func() { _ = c.Close() }()
	files := map[string]int32{}
	for i, file := range c.Files() {
		files[file.Name] = int32(i)
	}
	var refs []corpus.Ref
	var at []int
	for i, h := range hits {
		if file, ok := files[h.File]; ok && h.Text == nil {
			refs = append(refs, corpus.Ref{File: file, Row: h.Row, Chunk: h.Chunk})
			at = append(at, i)
		}
	}
	texts, err := c.Texts(ctx, refs)
	if err != nil {
		return err
	}
	for i, text := range texts {
		s := string(text)
		hits[at[i]].Text = &s
	}
	return nil
}

// oneLine shows the beginning of a text with every white space as one blank.
func oneLine(text *string, n int) string {
	if text == nil {
		return "(the text is not in the corpus any more)"
	}
	s := strings.Join(strings.Fields(*text), " ")
	if utf8.RuneCountInString(s) > n {
		s = string([]rune(s)[:n]) + " …"
	}
	return s
}
