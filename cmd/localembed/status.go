package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"localembed/internal/backfill"
)

func newStatus() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "status OUT",
		Short:   "Say where a job stands: running or not, rows, rate, time left",
		Example: "  localembed status vectors",
		Args:    atLeast(1, "the output folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := jobOf(args[0]); err != nil {
				return err
			}
			s, err := backfill.ReadStatus(args[0])
			if err != nil {
				return err
			}
			ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), false, asJSON)
			if asJSON {
				ui.printJSON(s)
				return nil
			}
			ui.status(s)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON on stdout, and a failure as JSON on the last line of stderr")
	return c
}

// status prints where a job stands.
func (u *ui) status(s *backfill.Status) {
	p := s.Progress
	if p == nil {
		_, _ = fmt.Fprintf(u.stdout, "%s; no progress was written yet\n", s.State)
		return
	}
	who := fmt.Sprintf("process %d on %s, %s ago", p.PID, p.Host, time.Since(p.Updated).Round(time.Second))
	switch s.State {
	case "running":
		_, _ = fmt.Fprintf(u.stdout, "running: %s\n", who)
	case "died":
		_, _ = fmt.Fprintf(u.stdout, "not running: %s wrote its last progress and died; the same run command goes on\n", who)
	case "stopped":
		_, _ = fmt.Fprintf(u.stdout, "not running: stopped by %s; the same run command goes on\n", who)
	default:
		_, _ = fmt.Fprintf(u.stdout, "finished by %s\n", who)
	}
	_, _ = fmt.Fprintf(u.stdout, "%d of %d rows, %d shards, %.0f tokens/s, padding %.2f %%", p.RowsDone, p.Rows, p.Shards, p.TokensPerSecond, 100*p.PaddingWaste)
	if s.State == "running" {
		_, _ = fmt.Fprintf(u.stdout, ", ETA %s", eta(p.ETASeconds))
	}
	_, _ = fmt.Fprintln(u.stdout)
}
