package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"localembed/internal/backfill"
	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/selftest"
	"localembed/internal/shard"
	"localembed/internal/tokenize"
	"localembed/models"
)

// modelOptions are the flags that say how the model is read.
func (f *flags) modelOptions(c *cobra.Command) models.Options {
	o := models.Options{
		Pooling: f.pooling, PromptName: f.promptName, MaxTokens: f.maxTokens, Dims: f.dims,
		Precision: f.precision, ONNX: f.onnx, Tokenize: tokenize.IDs,
	}
	if c.Flags().Changed("prompt") {
		o.Prompt = &f.prompt
	}
	if b, err := strconv.ParseBool(f.normalize); err == nil {
		o.Normalize = &b
	}
	return o
}

// session is what a subcommand opens and has to close.
type session struct {
	model     *models.Model
	tokenizer *tokenize.Tokenizer
	corpus    *corpus.Corpus
	runtime   *onnx.Runtime
	options   backfill.Options
}

func (s *session) close() {
	if s.corpus != nil {
		_ = s.corpus.Close()
	}
	if s.tokenizer != nil {
		s.tokenizer.Close()
	}
	if s.runtime != nil {
		_ = s.runtime.Close()
	}
}

// errNoCUDA answers who asks for CUDA.
var errNoCUDA = fault.New(fault.DeviceUnavailable, "this version has no CUDA devices").
	Hinting("use --devices cpu; `localembed plan --devices cuda` plans with CUDA's limits")

// open checks the flags and opens what a run or a plan reads: model, tokenizer and
// corpus. Only a run needs ONNX Runtime.
func (f *flags) open(c *cobra.Command, args []string, ui *ui, withRuntime bool) (s *session, err error) {
	if err := f.check(c); err != nil {
		return nil, err
	}
	device, err := parseDevices(f.devices)
	if err != nil {
		return nil, err
	}
	if device.kind == "cuda" && withRuntime {
		return nil, errNoCUDA
	}
	s = &session{}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	var revision string
	if s.model, revision, err = openModel(c.Context(), ui, f.model, f.modelOptions(c)); err != nil {
		return s, err
	}
	recipe, warnings := s.model.Recipe, slices.Clone(s.model.Warnings)
	if recipe.Precision == "fp16" && device.kind == "cpu" {
		warnings = append(warnings, "--precision fp16 is made for CUDA: a CPU computes it more slowly than fp32, and no better")
	}
	for _, w := range warnings {
		ui.log.Warn(w)
	}
	if device.kind == "fake" {
		// Made-up vectors must never be taken for the model's.
		digest := sha256.Sum256([]byte("fake device: " + recipe.ModelDigest))
		recipe.ModelDigest = hex.EncodeToString(digest[:])
	}
	if s.tokenizer, err = tokenize.Open(s.model.TokenizerJSON, tokenize.Options{MaxTokens: recipe.MaxTokens, Prompt: recipe.Prompt}); err != nil {
		return s, inModel(s.model.Dir, err)
	}
	out, err := filepath.Abs(f.out)
	if err != nil {
		return s, err
	}
	if s.corpus, err = corpus.Open(c.Context(), corpus.Options{
		Args: args, Text: f.text, ID: f.id, Keep: f.keep, Limit: f.limit, OutDir: out,
		WindowDocs: f.window, WindowBytes: f.windowBytes, SkipBad: f.onBadFile == "skip",
	}); err != nil {
		return s, err
	}
	meta := shard.Meta{Tool: "localembed " + version, Device: device.kind, Revision: revision, Recipe: recipe}
	if withRuntime && device.kind != "fake" {
		if s.runtime, err = onnx.Load(f.ortLib); err != nil {
			return s, err
		}
		meta.ONNXRuntime = s.runtime.Version()
	}
	s.options = backfill.Options{
		Out: f.out, Store: f.store, Job: f.job(args, s), Corpus: s.corpus, Tokenizer: s.tokenizer,
		PadID: int64(s.tokenizer.PadID()), VocabSize: s.model.VocabSize, Recipe: recipe, Limits: f.limits(device),
		DropLong: f.onLong == "error", MaxFailed: f.maxFailed, RetryFailed: f.retryFailed, Meta: meta, Warnings: warnings, Yes: f.yes,
		OpenDevices: device.opener(s.runtime, s.model), Unchanged: s.model.Unchanged, Log: ui.log,
	}
	s.options.Job.Recipe = recipe
	if withRuntime && device.kind != "fake" {
		test, err := f.selfTest(s.model, s.tokenizer)
		if err != nil {
			return s, err
		}
		// A batch is padded only where remainders of several lengths may share one.
		test.Pads = s.options.Limits.MinTokens > 1
		s.options.SelfTest = func(ctx context.Context, d backfill.Device) (selftest.Result, error) {
			return selftest.Run(ctx, d, test)
		}
	}
	return s, nil
}

func (f *flags) job(args []string, s *session) backfill.Job {
	job := backfill.Job{
		Corpus: args, Model: f.model, ONNX: f.onnx, Text: cmp.Or(f.text, corpus.DefaultText), Keep: f.keep, Limit: f.limit, OnLong: f.onLong, OnBadFile: f.onBadFile,
		Window: f.window, WindowBytes: f.windowBytes,
		BatchTokens: f.batchTokens, BatchItems: f.batchItems, BatchCells: f.batchCells,
	}
	if s.corpus.HasID() {
		job.ID = cmp.Or(f.id, s.corpus.Columns()[0].Name)
	}
	for _, file := range s.corpus.Files() {
		job.Files = append(job.Files, backfill.JobFile{
			Name: file.Name, Rows: file.Rows, Size: file.Size, ModTime: file.ModTime.UTC(), Footer: hex.EncodeToString(file.FooterSHA256[:]),
		})
	}
	return job
}

// inModel names the model folder in an error of its tokenizer.
func inModel(dir string, err error) error {
	e := fault.Of(err)
	if e.File == "" {
		e.File = dir
	}
	return e
}
