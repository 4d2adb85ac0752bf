package fault

import (
	"fmt"
	"os"
	"runtime/debug"
)

// Guard calls f and turns a panic in it, which is a defect of ours, into an Error of
// class internal. Every goroutine that works for a run goes through it: a panic that
// nobody recovers would end the process with the exit code of a usage error, and say
// nothing of going on.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(os.Stderr, "%v\n%s", p, debug.Stack())
			err = New(Internal, "unexpected: %v", p).
				Hinting("this is a defect of localembed: please report it with the lines above; the same command goes on from what is committed")
		}
	}()
	return f()
}
