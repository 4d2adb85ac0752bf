package main

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"localembed/internal/backfill"
	"localembed/internal/corpus"
	"localembed/internal/fault"
)

func newVerify() *cobra.Command {
	var store string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify OUT [CORPUS...]",
		Short: "Compare a job's shards with its corpus, row by row",
		Long: `Read the corpus that OUT was made of (as job.json names it, or CORPUS where it has
moved), every shard, every dead letter and the store, and say what is wrong: rows that are missing
or stand in the wrong place, other texts, ids or kept values, vectors that are not finite or not of
length 1, damaged pages and footers. Nothing is written, and no model is needed.

Exit codes: 0 all is right, 1 something is wrong.`,
		Example: "  localembed verify vectors",
		Args:    atLeast(1, "the output folder"),
		RunE: func(c *cobra.Command, args []string) error {
			return verify(c, args[0], args[1:], store, asJSON)
		},
	}
	c.Flags().StringVar(&store, "store", "", "checkpoint `folder`, where run was given one (default: OUT/.localembed/store)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON on stdout, and a failure as JSON on the last line of stderr")
	return c
}

// verification is what verify prints with --json.
type verification struct {
	*backfill.Verified
	Wrong []placed `json:"wrong"`
}

func verify(c *cobra.Command, out string, args []string, store string, asJSON bool) error {
	job, err := jobOf(out)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = job.Corpus
	}
	opened, err := corpus.Open(c.Context(), corpus.Options{
		Args: args, Text: job.Text, ID: job.ID, Keep: job.Keep, Limit: job.Limit, OutDir: out,
		WindowDocs: job.Window, WindowBytes: job.WindowBytes, SkipBad: job.OnBadFile == "skip",
	})
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), false, asJSON)
	result := verification{Wrong: []placed{}}
	const most = 1000 // findings that are listed; all are counted
	result.Verified, err = backfill.Verify(c.Context(), vfs.Default, out, store, job, opened, func(e *fault.Error) {
		switch {
		case len(result.Wrong) == most:
		case asJSON:
			result.Wrong = append(result.Wrong, place(e))
		default:
			result.Wrong = append(result.Wrong, placed{})
			_, _ = fmt.Fprintf(ui.stdout, "%s\n  %s\n", e.Error(), e.Hint)
		}
	})
	if err != nil {
		return err
	}
	v := result.Verified
	if asJSON {
		ui.printJSON(result)
	} else {
		_, _ = fmt.Fprintf(ui.stdout, "%d documents: %d in %d shards, %d dead letters; %d vectors in the store\n",
			v.Documents, v.RowsEmbedded, v.Shards, v.RowsDeadLettered, v.StoreVectors)
	}
	if v.Findings > 0 {
		return fault.New(fault.CorruptFile, "%d things are wrong", v.Findings).In(out).
			Hinting("each is listed on stdout with what to do; most are mended by the same run command again")
	}
	return nil
}

// jobOf reads the job of an output folder.
func jobOf(out string) (*backfill.Job, error) {
	job, err := backfill.ReadJob(vfs.Default, out)
	if err == nil && job == nil {
		err = fault.New(fault.NoSuchFile, "this folder has no job.json").In(out).Hinting("give the --out folder of a run")
	}
	return job, err
}
