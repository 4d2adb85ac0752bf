// Command localembed embeds a Parquet corpus with an open embedding model and
// writes Parquet shards of vectors.
//
// main maps an error to an exit code and the message; execute does the rest.
// Each subcommand has a file of its own; setup.go turns flags into the options of
// the pipeline, and ui.go holds what a user sees.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

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
	show := func(e *fault.Error) { printError(stderr, e) }
	if slices.Contains(args, "--json") || slices.Contains(args, "--json=true") {
		show = func(e *fault.Error) { printErrorJSON(stderr, e) }
	}
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
	var left *leftOut
	if errors.As(err, &left) {
		return fault.ExitLeftOut
	}
	e := fault.Of(err)
	show(e)
	return e.Class.ExitCode()
}

// graceful is how long batches in flight have to end after a signal.
const graceful = 9 * time.Second

// interruptible gives a context that the first SIGINT or SIGTERM ends. What is in
// flight is then finished and committed; a second signal, or 9 seconds, end the
// process at once, which loses nothing that was committed.
func interruptible(show func(*fault.Error)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		cancel(fault.New(fault.Interrupted, "stopped by %s; what was computed is committed", s).
			Hinting("run the same command again to go on"))
		select {
		case _, ok := <-signals:
			if !ok {
				return
			}
		case <-time.After(graceful):
		}
		show(fault.New(fault.Interrupted, "stopped at once; the batches in flight are lost, nothing that was committed is").
			Hinting("run the same command again to go on"))
		os.Exit(fault.ExitInterrupted)
	}()
	return ctx, func() { signal.Stop(signals); close(signals); cancel(nil) }
}

// leftOut is a job that is finished with some documents left out.
type leftOut struct{ documents int64 }

func (*leftOut) Error() string { return "some documents were left out" }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "localembed",
		Short: "Embed a Parquet corpus into Parquet shards of vectors, resumable at any point",
		Long: `localembed reads texts from Parquet, embeds them with an open embedding model
through ONNX Runtime, and writes Parquet shards of vectors. A run that was
stopped, killed or lost goes on where it was when the same command is given again.

Exit codes: 0 all rows embedded, 1 failed and resumable, 2 usage,
3 finished with some rows left out, 130 interrupted.`,
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
	root.AddCommand(newRun(), newPlan(), newQuery(), newModel())
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
