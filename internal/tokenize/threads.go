package tokenize

import (
	"runtime"

	"localembed/internal/fault"
)

// threads are as many operating system threads as there are cores, and the only
// ones on which texts are encoded: the library's allocator keeps freed memory per
// thread, and Go moves a goroutine to another thread at any call.
type threads chan func()

func newThreads() threads {
	t := make(threads)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			runtime.LockOSThread()
			for call := range t {
				call()
			}
		}()
	}
	return t
}

// do runs call on one of the threads, waits for it and gives its error.
func (t threads) do(call func() error) error {
	done := make(chan error, 1)
	t <- func() { done <- fault.Guard(call) }
	return <-done
}
