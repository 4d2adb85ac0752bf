package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"localembed/internal/fault"
)

// graceful is how long batches in flight have to end after a signal or a deadline. It is a
// variable so that tests need not wait.
var graceful = 9 * time.Second

// goOn is what to do after an interruption.
const goOn = "run the same command again to go on"

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
		cancel(fault.New(fault.Interrupted, "stopped by %s; what was computed is committed", s).Hinting(goOn))
		select {
		case _, ok := <-signals:
			if !ok {
				return
			}
		case <-time.After(graceful):
		}
		stopAtOnce(show)
	}()
	return ctx, func() { signal.Stop(signals); close(signals); cancel(nil) }
}

// stopAtOnce is the end of a process whose batches in flight do not end.
func stopAtOnce(show func(*fault.Error)) {
	show(fault.New(fault.Interrupted, "stopped at once; the batches in flight are lost, nothing that was committed is").Hinting(goOn))
	os.Exit(fault.ExitInterrupted)
}

// withDeadline ends ctx after d as a first signal does, counted from now; 0 is no
// deadline. Machines that are lent for a time do not wait, so 9 seconds later the process ends.
func withDeadline(ctx context.Context, d time.Duration, show func(*fault.Error)) (context.Context, func()) {
	if d == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d,
		fault.New(fault.Interrupted, "stopped after %s, as --stop-after says; what was computed is committed", d).Hinting(goOn))
	force := time.AfterFunc(d+graceful, func() { stopAtOnce(show) })
	return ctx, func() { force.Stop(); cancel() }
}
