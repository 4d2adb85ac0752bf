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

// queue holds the batches of all planned windows, in window order. It never
// blocks the side that fills it: windows in flight are its bound.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	items  []work
	closed bool
}

func (q *queue) init() { q.filled.L = &q.mu }

func (q *queue) push(items []work) {
	q.mu.Lock()
	q.items = append(q.items, items...)
	q.mu.Unlock()
	q.filled.Broadcast()
}

// pop waits for a batch; false means that there will be none.
func (q *queue) pop() (work, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.filled.Wait()
	}
	if len(q.items) == 0 {
		return work{}, false
	}
	w := q.items[0]
	q.items[0] = work{}
	q.items = q.items[1:]
	return w, true
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.filled.Broadcast()
}
