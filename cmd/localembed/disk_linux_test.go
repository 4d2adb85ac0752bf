package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"localembed/internal/fault"
)

// smallDisk mounts a file system in memory of a size, which resize changes.
func smallDisk(t *testing.T, size int) (dir string, resize func(size int)) {
	dir = t.TempDir()
	mount := func(flags uintptr, size int) error {
		return syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%d", size))
	}
	if err := mount(0, size); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(size int) {
		if err := mount(syscall.MS_REMOUNT, size); err != nil {
			t.Fatal(err)
		}
	}
}

// failing runs the command, which must fail, and returns the failure that it prints.
func (p *process) failing(out string) (f struct{ Class, File, Message, Hint string }) {
	p.t.Helper()
	c, _, stderr := p.start(out)
	_ = c.Wait()
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &f); err != nil || c.ProcessState.ExitCode() != fault.ExitFailed {
		p.t.Fatalf("exit code %d, and stderr is\n%s", c.ProcessState.ExitCode(), stderr)
	}
	return f
}

// A disk that is too small is told before the first batch; one that becomes full ends the
// run, with the file that it could not write. After space is made the same command goes on, as often as it
// takes, and computes nothing twice.
func TestAFullDisk(t *testing.T) {
	p := newProcess(t, 320)
	undisturbed := p.path("undisturbed")
	p.finish(undisturbed)
	want := p.sums(undisturbed)
	batches, _ := p.committed(undisturbed)

	const step = 100_000
	size := 3 * step
	disk, resize := smallDisk(t, size)
	p.out = filepath.Join(disk, "out")
	numbers := regexp.MustCompile(`about 1\.\d MB are needed and 0\.\d MB are free`)
	if f := p.failing(p.out); f.Class != "disk_full" || !strings.HasPrefix(f.File, p.out) || !numbers.MatchString(f.Message) || !strings.Contains(f.Hint, "same command again") {
		t.Fatalf("a disk of %d bytes: %+v", size, f)
	}
	full := 0
	for size = 6 * step; ; size += step {
		resize(size)
		c, _, stderr := p.start(p.out)
		_ = c.Wait()
		code := c.ProcessState.ExitCode()
		if code == fault.ExitDone {
			break
		}
		said := stderr.String()
		if code != fault.ExitFailed || !strings.Contains(said, `"class":"disk_full","file":"`+p.out) || !strings.Contains(said, "same command again") {
			t.Fatalf("a disk of %d bytes: exit code %d\n%s", size, code, said)
		}
		if strings.Contains(said, "no space left on device") {
			full++
		}
	}
	t.Logf("%d runs filled the disk; %d bytes are enough", full, size)
	if full < 2 {
		t.Errorf("%d runs filled the disk", full)
	}
	if got := p.sums(p.out); !maps.Equal(got, want) {
		t.Errorf("the shards differ:\n%v\n%v", got, want)
	}
	if n, vectors := p.committed(p.out); n != batches || vectors != p.unique {
		t.Errorf("%d batches with %d vectors were committed, want %d with %d", n, vectors, batches, p.unique)
	}
}

// A limit on the size of files ends a run as a full disk does, and is named.
func TestALimitOnTheSizeOfFiles(t *testing.T) {
	p := newProcess(t, 120)
	undisturbed := p.path("undisturbed")
	p.finish(undisturbed)
	want := p.sums(undisturbed)
	for _, blocks := range []int{20, 100} {
		p.fileLimit = fmt.Sprint(blocks)
		limit := regexp.MustCompile(fmt.Sprintf("may not write files of more than (%d|%d) bytes", blocks*512, blocks*1024)) // as the shell counts
		f := p.failing(p.out)
		if f.Class != "disk_full" || !strings.HasPrefix(f.File, p.out) || !limit.MatchString(f.Message) || !strings.Contains(f.Hint, "ulimit -f") {
			t.Fatalf("a limit of %d blocks: %+v", blocks, f)
		}
	}
	p.fileLimit = ""
	p.finish(p.out)
	if got := p.sums(p.out); !maps.Equal(got, want) {
		t.Errorf("the shards differ:\n%v\n%v", got, want)
	}
}
