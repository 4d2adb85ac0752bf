package main

import (
	"github.com/spf13/cobra"

	"localembed/internal/backfill"
)

func newPlan() *cobra.Command {
	var f flags
	var exact bool
	c := &cobra.Command{
		Use:   "plan --model DIR --out DIR [flags] CORPUS...",
		Short: "Say what run with the same flags would do",
		Long: `Read the corpus as run does and say what would be computed: documents, tokens,
duplicates, batches, padding, what is done already. It opens no device and
writes nothing. Up to 200 000 rows every number is exact; above, tokens and
duplicates come from a fixed sample of the texts, with their error. A damaged
file is found as run finds it; vectors that are there are taken to be whole.`,
		Example: `  localembed plan --model all-MiniLM-L6-v2 --out vectors corpus/
  localembed plan --model all-MiniLM-L6-v2 --out vectors --devices cuda --json corpus/`,
		Args: atLeast(1, "the corpus (a file, folder or glob)"),
		RunE: func(c *cobra.Command, args []string) error {
			ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), false, f.json)
			s, err := f.open(c, args, ui, false)
			if err != nil {
				return err
			}
			defer s.close()
			e, err := backfill.Plan(c.Context(), s.options, exact)
			if err != nil {
				return err
			}
			ui.estimate(e)
			return nil
		},
	}
	f.register(c)
	c.Flags().BoolVar(&exact, "exact", false, "look at every text however many there are; needs about 50 bytes of memory a distinct text")
	return c
}
