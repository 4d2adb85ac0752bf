package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localembed/internal/backfill"
	"localembed/internal/fault"
	"localembed/internal/testenv"
)

// stubborn is a process whose batch in flight never ends. Its arguments are how long it is
// given after it is told to stop, and its deadline.
func stubborn() {
	show := func(e *fault.Error) { printErrorJSON(os.Stderr, e) }
	var err error
	if graceful, err = time.ParseDuration(os.Args[1]); err != nil {
		panic(err)
	}
	deadline, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err)
	}
	ctx, stop := interruptible(show)
	defer stop()
	ctx, end := withDeadline(ctx, deadline, show)
	defer end()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	time.Sleep(time.Minute)
}

// stubbornly starts a stubborn process and hands out the lines that it prints.
func stubbornly(t *testing.T, grace, deadline string) (*exec.Cmd, *bufio.Scanner, *strings.Builder) {
	t.Helper()
	exe, err := exec.LookPath("stubborn") // made by TestMain
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, grace, deadline)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &strings.Builder{}
	c.Stderr = stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("it says %q", lines.Text())
	}
	return c, lines, stderr
}

// ends checks that the process ends soon with exit code 130 and says why.
func ends(t *testing.T, c *exec.Cmd, stderr *strings.Builder) {
	t.Helper()
	start := time.Now()
	_ = c.Wait()
	// Left alone it sleeps for a minute.
	if took := time.Since(start); c.ProcessState.ExitCode() != fault.ExitInterrupted || took > 30*time.Second {
		t.Errorf("exit code %d after %s", c.ProcessState.ExitCode(), took)
	}
	if s := stderr.String(); !strings.Contains(s, "stopped at once") || !strings.Contains(s, `"class":"interrupted"`) || !strings.Contains(s, goOn) {
		t.Errorf("stderr is %q", s)
	}
}

func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c, lines, stderr := stubbornly(t, "1m", "0s")
		_ = c.Process.Signal(sig)
		if !lines.Scan() || !strings.Contains(lines.Text(), "stopped by "+sig.String()) {
			t.Fatalf("it says %q", lines.Text())
		}
		_ = c.Process.Signal(sig)
		ends(t, c, stderr)
	}
}

func TestAProcessThatDoesNotEndIsEnded(t *testing.T) {
	t.Parallel()
	c, lines, stderr := stubbornly(t, "200ms", "0s")
	_ = c.Process.Signal(syscall.SIGTERM)
	if !lines.Scan() {
		t.Fatal("it says nothing")
	}
	ends(t, c, stderr)

	c, lines, stderr = stubbornly(t, "200ms", "10ms")
	if !lines.Scan() || !strings.Contains(lines.Text(), "stopped after 10ms, as --stop-after says") {
		t.Fatalf("it says %q", lines.Text())
	}
	ends(t, c, stderr)
}

// ending is the time in which a run ends that is told to, and what a busy machine adds.
const ending = 10*time.Second + 10*time.Second

// A model that takes for ever to open, from a file server that does not answer, does not keep a run
// from ending in time.
func TestASignalWhileAModelOpens(t *testing.T) {
	t.Parallel()
	p := newProcess(t, 1)
	model := p.path("model")
	if err := os.CopyFS(model, os.DirFS(testenv.Model(t))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(model, "config.json")
	if err := errors.Join(os.Remove(config), syscall.Mkfifo(config, 0o600)); err != nil {
		t.Fatal(err)
	}
	c, _, stderr := p.start(p.out, "--model", model)
	// A pipe can be opened once there is a reader, which then waits for what never comes.
	p.until(c, func() bool {
		w, err := os.OpenFile(config, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false
		}
		t.Cleanup(func() { _ = w.Close() })
		return true
	})
	start := time.Now()
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	took := time.Since(start)
	if c.ProcessState.ExitCode() != fault.ExitInterrupted || took > ending || !strings.Contains(stderr.String(), `"class":"interrupted"`) || !strings.Contains(stderr.String(), goOn) {
		t.Errorf("exit code %d after %s\n%s", c.ProcessState.ExitCode(), took, stderr)
	}
}

// A deadline may fall into any stage: the model is read, shards are read back into a
// store that was lost, texts are tokenized, the device is tested, batches run, a
// shard is written. Each run ends in good order, and all together make the shards of an undisturbed one.
func TestDeadlinesEndRunsInGoodOrder(t *testing.T) {
	p := newProcess(t, 160)
	undisturbed := p.path("undisturbed")
	p.finish(undisturbed)
	want := p.sums(undisturbed)
	stopped := 0
	for deadline := 50 * time.Millisecond; ; deadline += deadline / 3 {
		c, stdout, stderr := p.start(p.out, "--stop-after", deadline.String())
		started := time.Now()
		_ = c.Wait()
		if took := time.Since(started); took > deadline+ending {
			t.Errorf("with a deadline of %s the run took %s", deadline, took)
		}
		code := c.ProcessState.ExitCode()
		if code == fault.ExitDone {
			break
		}
		if code != fault.ExitInterrupted || !strings.Contains(stderr.String(), "--stop-after says") {
			t.Fatalf("a deadline of %s: exit code %d\n%s", deadline, code, stderr)
		}
		stopped++
		if stdout.Len() > 0 {
			p.report(stdout)
		}
		if stopped%3 == 0 { // what is published is enough to go on
			if err := os.RemoveAll(backfill.StoreDir(p.out, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d deadlines ended a run", stopped)
	if stopped == 0 {
		t.Error("no deadline ended a run")
	}
	if got := p.sums(p.out); !maps.Equal(got, want) {
		t.Errorf("the shards differ:\n%v\n%v", got, want)
	}
}
