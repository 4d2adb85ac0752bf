package checkpoint

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localembed/internal/fault"
)

// holdStore is set in a second process of these tests: it opens the store of that
// folder, says so on stdout and holds it until its stdin ends.
const holdStore = "LOCALEMBED_TEST_HOLD_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdStore); dir != "" {
		if _, err := Open(dir, Options{Owner: "localembed run --out of-another-process"}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestASecondProcessIsToldWhoHoldsTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	closeStore(t, open(t, nil, dir))
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), holdStore+"="+dir)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q (%v)", line, err)
	}
	host, _ := os.Hostname()
	for _, readOnly := range []bool{false, true} {
		_, err := Open(dir, Options{ReadOnly: readOnly})
		e := wantClass(t, err, fault.StoreLocked)
		for _, want := range []string{fmt.Sprintf("process %d ", c.Process.Pid), host, "run --out of-another-process"} {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("%q does not name %q", e.Error(), want)
			}
		}
		if want := fmt.Sprintf("kill -INT %d", c.Process.Pid); !strings.Contains(e.Hint, want) {
			t.Errorf("hint %q lacks %q", e.Hint, want)
		}
	}
	// However it ends, its lock ends with it.
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	_ = in.Close()
	closeStore(t, open(t, nil, dir))
}

func TestALockFileThatCannotBeMadeIsNoLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	closeStore(t, open(t, nil, dir))
	for _, lock := range []string{"lock", "index/LOCK"} {
		path := filepath.Join(dir, lock)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, readOnly := range []bool{false, true} {
		_, err := Open(dir, Options{ReadOnly: readOnly})
		_ = wantClass(t, err, fault.IOError)
	}
}
