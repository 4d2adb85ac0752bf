package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/onnx"
	"localembed/internal/selftest"
	"localembed/internal/tokenize"
	"localembed/models"
)

func newModel() *cobra.Command {
	var f flags
	var check bool
	c := &cobra.Command{
		Use:   "model MODEL [flags]",
		Short: "Say how a model is read, and test it",
		Long: `Fetch the model, where it is a hub's, and print the recipe that run with the same flags would use, which file or flag each
value came from, the work of a token, and what is unusual about the folder.

With --check the model is opened on the CPU, and a few fixed texts run alone, in
batches and padded: numbers that are not finite, or vectors other than those of
localembed.reference.json in the folder, are an error; else it says how far vectors can
be reproduced. run does the shorter half of this when it opens its devices.`,
		Example: `  localembed model all-MiniLM-L6-v2 --check
  localembed model my-bert --pooling cls --normalize true --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.New(fault.Usage, "give one model, not %d", len(args)).Hinting("usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { f.model = args[0]; return f.showModel(c, check) },
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&check, "check", false, "open the model and test it; takes seconds for a small one")
	f.registerRecipe(c)
	f.registerRuntime(c)
	return c
}

// modelInfo is what localembed knows about a folder.
type modelInfo struct {
	Model           string           `json:"model"`
	Revision        string           `json:"model_revision,omitempty"` // the hub's commit
	Recipe          key.Recipe       `json:"recipe"`
	FLOPsPerToken   float64          `json:"flops_per_token"`
	WeightBytes     int64            `json:"weight_bytes"`
	Facts           []models.Fact    `json:"facts"`
	Warnings        []string         `json:"warnings"`
	Reproducibility *selftest.Result `json:"reproducibility"` // nil without --check
}

func (f *flags) showModel(c *cobra.Command, check bool) error {
	if err := f.checkRecipe(c); err != nil {
		return err
	}
	ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), false, f.json)
	m, revision, err := openModel(c.Context(), ui, f.model, f.modelOptions(c))
	if err != nil {
		return err
	}
	t, err := tokenize.Open(m.TokenizerJSON, tokenize.Options{MaxTokens: m.Recipe.MaxTokens, Prompt: m.Recipe.Prompt})
	if err != nil {
		return inModel(m.Dir, err)
	}
	defer t.Close()
	info := modelInfo{Model: f.model, Revision: revision, Recipe: m.Recipe, FLOPsPerToken: m.FLOPsPerToken, WeightBytes: m.WeightBytes, Facts: m.Facts, Warnings: m.Warnings}
	if info.Warnings == nil {
		info.Warnings = []string{}
	}
	if check {
		if info.Reproducibility, err = f.checkModel(c.Context(), m, t); err != nil {
			return err
		}
	}
	if f.json {
		ui.printJSON(info)
		return nil
	}
	info.print(ui.stdout)
	return nil
}

// checkModel opens a model on one thread of the CPU and tests it.
func (f *flags) checkModel(ctx context.Context, m *models.Model, t *tokenize.Tokenizer) (*selftest.Result, error) {
	o, err := f.selfTest(m, t)
	if err != nil {
		return nil, err
	}
	o.Thorough, o.Padded = true, true
	runtime, err := onnx.Load(f.ortLib)
	if err != nil {
		return nil, err
	}
	defer func() { _ = runtime.Close() }()
	s, err := runtime.OpenCPU("cpu:0", m, 1)
	if err != nil {
		return nil, inModel(m.Dir, err)
	}
	defer func() { _ = s.Close() }()
	r, err := selftest.Run(ctx, s, o)
	if err != nil {
		return nil, inModel(m.Dir, err)
	}
	return &r, nil
}

// selfTest is what is tested of a model, with the reference vectors of its folder. They
// hold for the folder's own pooling, or where the file says which one was given.
func (f *flags) selfTest(m *models.Model, t *tokenize.Tokenizer) (selftest.Options, error) {
	o := selftest.Options{Tokenizer: t, Dims: m.Recipe.Dims, PadID: int64(t.PadID())}
	ref, err := selftest.FindReference(m.Dir, m.Recipe)
	if err == nil && ref != nil && (f.pooling == "" || len(ref.Options) > 0) {
		o.Reference = ref
	}
	return o, err
}

func (info *modelInfo) print(w io.Writer) {
	_, _ = fmt.Fprintln(w, info.Model)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range info.Facts {
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\n", f.Name, f.Value, f.From)
	}
	if info.Revision != "" {
		_, _ = fmt.Fprintf(table, "  revision\t%s\tthe hub's commit\n", info.Revision)
	}
	_, _ = fmt.Fprintf(table, "  model digest\t%.16s…\tevery file that decides a vector\n", info.Recipe.ModelDigest)
	if r := info.Reproducibility; r != nil {
		_, _ = fmt.Fprintf(table, "  reproducibility\t%s\ta few texts alone and in batches; they differ by at most %.2g\n", r.Level, r.Difference)
		_, _ = fmt.Fprintf(table, "  with padding\t%s\tdiffer by at most %.2g; a run on the CPU never pads\n", r.Padded.Level, r.Padded.Difference)
		if r.Reference != nil {
			_, _ = fmt.Fprintf(table, "  reference vectors\tleast cosine %.7f\t%d texts of %s\n", r.Reference.MinCosine, r.Reference.Texts, selftest.ReferenceFile)
		}
	}
	_ = table.Flush()
	for _, warning := range info.Warnings {
		_, _ = fmt.Fprintf(w, "warning: %s\n", warning)
	}
}
