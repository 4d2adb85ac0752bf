package tokenize

import "runtime"

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

// do runs call on one of the threads and waits for it.
func (t threads) do(call func()) {
	done := make(chan struct{})
	t <- func() { defer close(done); call() }
	<-done
}
