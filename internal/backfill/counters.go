package backfill

import (
	"sync"
	"sync/atomic"
	"time"

	"localembed/internal/selftest"
)

// Stages of the pipeline, as the report names them.
const (
	stageRead = iota
	stagePrepare
	stageDevices
	stageCommit
	stagePublish
	stages
)

var stageNames = [stages]string{"read", "prepare", "devices", "commit", "publish"}

// meter adds up how long a stage worked and how long it waited for others.
type meter struct{ busy, waited atomic.Int64 }

// begin starts work; the function it returns ends it and says how long it took.
func (m *meter) begin() func() time.Duration { return timer(&m.busy) }

func (m *meter) wait() func() time.Duration { return timer(&m.waited) }

func timer(sum *atomic.Int64) func() time.Duration {
	start := time.Now()
	return func() time.Duration {
		d := time.Since(start)
		sum.Add(int64(d))
		return d
	}
}

// counters are what the report and the progress are made from.
type counters struct {
	stages  [stages]meter
	written atomic.Int64 // shards

	mu        sync.Mutex
	rows      int64 // of published windows, and the same for the next five
	documents int64
	embedded  int64
	truncated int64
	dead      map[string]int64
	shards    int64
	underway  int64 // documents of batches that are committed, in windows that are not published

	tokens, padded, computed, batches int64 // committed by this process
	deviceNames                       []string
	deviceBatches, deviceTokens       []int64
	deviceBusy                        []time.Duration
	dropped                           []string  // why a device was given up
	retries, splits, gaveUp           int64     // gaveUp counts texts that devices could not embed, in earlier runs too
	opened, last                      time.Time // when the devices were opened, and the last batch ended
	tested                            *selftest.Result
}

func (c *counters) open(devices []Device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range devices {
		c.deviceNames = append(c.deviceNames, d.Name())
	}
	c.deviceBatches = make([]int64, len(devices))
	c.deviceTokens = make([]int64, len(devices))
	c.deviceBusy = make([]time.Duration, len(devices))
	c.dropped = make([]string, len(devices))
	c.opened = time.Now()
}

// ran counts a batch that a device worked on.
func (c *counters) ran(device int, took time.Duration, b work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deviceBatches[device]++
	c.deviceTokens[device] += int64(b.real)
	c.deviceBusy[device] += took
	c.last = time.Now()
}

// drop notes that a device is given up, and says how many are left.
func (c *counters) drop(device int, why string) (left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped[device] = why
	for _, d := range c.dropped {
		if d == "" {
			left++
		}
	}
	return left
}

// pace is the time that a padded token took so far, 0 before the first batch.
func (c *counters) pace() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.padded == 0 {
		return 0
	}
	busy := time.Duration(0)
	for _, d := range c.deviceBusy {
		busy += d
	}
	return busy / time.Duration(c.padded)
}

// add adds to a counter and gives what it is then.
func (c *counters) add(n *int64, more int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n += more
	return *n
}

// committed counts a batch that is in the store.
func (c *counters) committed(b work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens += int64(b.real)
	c.padded += int64(b.longest * len(b.docs))
	c.computed += int64(len(b.docs))
	c.underway += int64(len(b.docs))
	b.window.underway += int64(len(b.docs))
	c.batches++
}

// published counts a window whose shard is there.
func (c *counters) published(w *window, embedded int, truncated int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows += w.Rows
	c.documents += int64(w.Len())
	c.embedded += int64(embedded)
	c.truncated += truncated
	c.shards++
	c.underway -= w.underway
	if c.dead == nil {
		c.dead = map[string]int64{}
	}
	for _, f := range w.failed {
		c.dead[f.Class]++
	}
}
