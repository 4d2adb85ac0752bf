package backfill

import (
	"runtime"
	"time"

	"localembed/internal/fault"
)

// call is one call of Run.
type call struct {
	ids           []int64
	items, length int
	lengths       []int32
	out           []float32
}

// runner calls Run of one device from a goroutine that is locked to its thread. A device
// that does not come back keeps that goroutine, and the slices of the call,
// until the process ends; nobody waits for it.
type runner struct {
	calls   chan call
	results chan error
}

func newRunner(d Device) *runner {
	r := &runner{calls: make(chan call), results: make(chan error, 1)}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for c := range r.calls {
			r.results <- fault.Guard(func() error { return d.Run(c.ids, c.items, c.length, c.lengths, c.out) })
		}
	}()
	return r
}

// run calls Run and waits for it, but no longer than patience.
func (r *runner) run(c call, patience time.Duration) error {
	r.calls <- c
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-r.results:
		return err
	case <-timer.C:
		return hung{after: patience.Round(time.Second).String()}
	}
}

func (r *runner) close() { close(r.calls) }

// leastPatience is the least time that a batch is given. A variable so that tests need
// not wait.
var leastPatience = time.Minute

// patience is how long a device may take for a batch: twenty times what batches of
// its size took so far, and ten minutes for the first, which may compile kernels.
func (r *run) patience(b work) time.Duration {
	pace := r.count.pace()
	if pace == 0 {
		return 10 * leastPatience
	}
	return max(leastPatience, 20*pace*time.Duration(b.padded()))
}
