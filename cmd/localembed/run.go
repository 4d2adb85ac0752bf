package main

import (
	"github.com/spf13/cobra"

	"localembed/internal/backfill"
	"localembed/internal/fault"
)

func newRun() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "run --model DIR --out DIR [flags] CORPUS...",
		Short: "Embed a corpus, or go on with it",
		Long: `Embed the texts of Parquet files, folders (all *.parquet below them) and globs,
in this order, and write OUT/part-000000.parquet …, OUT/failures/ for texts
that cannot be embedded, and OUT/report.json. The same command again goes on
where the last one ended, and does nothing where all is done.`,
		Example: `  localembed run --model all-MiniLM-L6-v2 --out vectors corpus.parquet
  localembed run --model all-MiniLM-L6-v2 --out vectors --text body --id url --keep lang,date corpus/
  localembed run --model all-MiniLM-L6-v2 --out try --limit 10000 'corpus/*.parquet'`,
		Args: atLeast(1, "the corpus (a file, folder or glob)"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.register(c)
	c.Flags().BoolVar(&f.yes, "yes", false, "delete surplus parts of a corpus that became shorter, even when they are more than the parts written")
	c.Flags().DurationVar(&f.stopAfter, "stop-after", 0, "stop in good order after this `time`, as 55m or 7h30m, counted from the start: for machines that are lent until a known moment (default: never)")
	c.Flags().BoolVar(&f.quiet, "quiet", false, "no progress and no summary")
	return c
}

func (f *flags) run(c *cobra.Command, args []string) error {
	ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), f.quiet, f.json)
	ctx, stop := withDeadline(c.Context(), f.stopAfter, shower(c.ErrOrStderr(), f.json))
	defer stop()
	c.SetContext(ctx)
	s, err := f.open(c, args, ui, true)
	if err != nil {
		return err
	}
	defer s.close()
	s.options.Progress = ui.progress
	report, err := backfill.Run(ctx, s.options)
	ui.end()
	if report != nil && (err == nil || fault.Is(err, fault.Interrupted)) {
		ui.report(report, f.out)
	}
	if err == nil && report.LeftOut() {
		err = leftOut{}
	}
	return err
}
