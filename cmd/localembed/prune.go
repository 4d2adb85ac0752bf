package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"localembed/internal/backfill"
)

func newPrune() *cobra.Command {
	var store string
	var asJSON bool
	c := &cobra.Command{
		Use:   "prune OUT",
		Short: "Free the disk space of vectors that the shards hold as well",
		Long: `Delete from the checkpoint store what OUT's shards hold as well. The shards alone are the
checkpoint then: the same run again computes nothing, and reads them back into the store when it
is given, which takes the space again. A segment of the store, of up to 1 GiB, that holds anything else
stays whole; so it is best done when the job is finished. Other jobs that share the store read their own shards back, and
compute texts again that they had in common with OUT only.`,
		Example: "  localembed prune vectors",
		Args:    atLeast(1, "the output folder"),
		RunE: func(c *cobra.Command, args []string) error {
			job, err := jobOf(args[0])
			if err != nil {
				return err
			}
			p, err := backfill.Prune(c.Context(), nil, args[0], store, job)
			if err != nil {
				return err
			}
			ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), false, asJSON)
			if asJSON {
				ui.printJSON(p)
				return nil
			}
			_, _ = fmt.Fprintf(ui.stdout, "%.3f GB freed, %.3f GB left in the store; %d shards hold the vectors\n",
				float64(p.Freed)/1e9, float64(p.Kept)/1e9, p.Shards)
			return nil
		},
	}
	c.Flags().StringVar(&store, "store", "", "checkpoint `folder`, where run was given one (default: OUT/.localembed/store)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON on stdout, and a failure as JSON on the last line of stderr")
	return c
}
