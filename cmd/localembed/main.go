// Command localembed embeds a Parquet corpus with an open embedding model and
// writes Parquet shards of vectors.
//
// main maps an error to an exit code and the message; execute does the rest.
// Each subcommand has a file of its own; setup.go turns flags into the options of
// the pipeline, and ui.go holds what a user sees.
package main

import (
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"localembed/internal/fault"
)

// version is set by the Makefile.
var version = "dev"

func main() {
	// The heap is a few large slices without pointers, so that collecting it
	// often costs nothing and keeps resident memory close to what is in use.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	// A flag error, and a signal, can come before --json is parsed.
	show := shower(stderr, slices.Contains(args, "--json") || slices.Contains(args, "--json=true"))
	ctx, stop := interruptible(show)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return fault.ExitDone
	}
	if errors.Is(err, leftOut{}) {
		return fault.ExitLeftOut
	}
	e := fault.Of(err)
	show(e)
	return e.Class.ExitCode()
}

// leftOut is a job that is finished with some documents or files left out.
type leftOut struct{}

func (leftOut) Error() string { return "some documents or files were left out" }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "localembed",
		Short: "Embed a Parquet corpus into Parquet shards of vectors, resumable at any point",
		Long: `localembed reads texts from Parquet, embeds them with an open embedding model
through ONNX Runtime, and writes Parquet shards of vectors. A run that was
stopped, killed or lost goes on where it was when the same command is given again.

Exit codes: 0 all rows embedded, 1 failed and resumable, 2 usage,
3 finished with some rows or files left out, 130 interrupted.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.New(fault.Usage, "there is no command %q", args[0]).Hinting("localembed --help lists the commands")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fault.New(fault.Usage, "%v", err).Hinting("%s --help lists the flags", c.CommandPath())
	})
	root.AddCommand(newRun(), newPlan(), newQuery(), newModel(), newStatus(), newDoctor(), newVerify(), newPrune())
	return root
}

// atLeast is cobra.MinimumNArgs with a sentence of ours.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return fault.New(fault.Usage, "%s is missing", what).Hinting("usage: %s", c.UseLine())
		}
		return nil
	}
}
