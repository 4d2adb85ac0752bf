package backfill

import (
	"context"
	"sync"
)

// receive takes from a channel, or gives up when the run stops. The time it waited
// is the stage's.
func receive[T any](ctx context.Context, from <-chan T, m *meter) (v T, ok bool) {
	defer m.wait()()
	select {
	case v, ok = <-from:
		return v, ok
	case <-ctx.Done():
		return v, false
	}
}

// send gives to a channel, or gives up when the run stops.
func send[T any](ctx context.Context, to chan<- T, v T, m *meter) bool {
	defer m.wait()()
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// queue holds the batches of all planned windows, in window order, and knows how
// many are not done with, in a device's hands too: a batch may come back split. It
// never blocks the side that fills it: windows in flight are its bound.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	items   []work
	open    int  // batches that are neither committed nor given up
	closed  bool // no window will follow
	stopped bool // nothing is handed out any more
}

func (q *queue) init() { q.changed.L = &q.mu }

// push adds the batches of a window.
func (q *queue) push(items []work) {
	q.change(func() {
		q.items = append(q.items, items...)
		q.open += len(items)
	})
}

// replace puts the halves of a batch in its place: next in turn, or last.
func (q *queue) replace(halves []work, last bool) {
	q.change(func() {
		if last {
			q.items = append(q.items, halves...)
		} else {
			q.items = append(halves, q.items...)
		}
		q.open += len(halves) - 1
	})
}

// back gives a batch back that was taken but not run.
func (q *queue) back(b work) { q.replace([]work{b}, false) }

// settle says that a batch is committed or given up.
func (q *queue) settle() { q.change(func() { q.open-- }) }

// close says that no window follows; what is open may still come back.
func (q *queue) close() { q.change(func() { q.closed = true }) }

// stop ends the handing out.
func (q *queue) stop() { q.change(func() { q.stopped = true }) }

func (q *queue) change(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	q.changed.Broadcast()
}

// pop waits for a batch; false means that there will be none, or none for a device
// that is gone.
func (q *queue) pop(gone func() bool) (work, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.stopped && !gone() && (!q.closed || q.open > 0) {
		q.changed.Wait()
	}
	if len(q.items) == 0 || q.stopped || gone() {
		return work{}, false
	}
	w := q.items[0]
	q.items[0] = work{}
	q.items = q.items[1:]
	return w, true
}

// wake lets those who wait look again.
func (q *queue) wake() { q.change(func() {}) }
