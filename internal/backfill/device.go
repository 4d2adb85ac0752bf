package backfill

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"localembed/internal/fault"
)

// result is a batch that a device has computed.
type result struct {
	work
	vectors []float32 // len(docs) × dim
	release func()    // lets the next batch of a careful run go, once this one is committed
}

// input is a batch in the form in which a device takes it.
type input struct {
	work
	ids     []int64 // len(docs) × longest, padded with the pad id behind the real tokens
	lengths []int32 // nil where every text has the longest length
}

// devices opens the devices when the first batch is there and feeds them until
// every batch is done with. Each has three goroutines: one lays out the next batch, one
// waits for the device and decides with the policy, and one, locked to its thread, is
// inside Run.
func (r *run) devices(ctx context.Context, out chan<- result, dead <-chan struct{}) (err error) {
	first, ok := r.queue.pop(func() bool { return false })
	if !ok {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // opening a large model takes longer than a signal may take
	}
	if err := r.careful.begin(r.store, r.Log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.careful.end(r.store)) }()
	opened, err := r.OpenDevices()
	if err != nil {
		return err
	}
	if err := r.selfTest(ctx, opened); err != nil {
		return err
	}
	r.count.open(opened)
	group, ctx := errgroup.WithContext(ctx)
	feeders := make([]*feeder, len(opened))
	for i, d := range opened {
		f := newFeeder(r, i, d, out, dead)
		feeders[i] = f
		if i == 0 {
			r.queue.back(first) // the batch that made the devices open
		}
		group.Go(func() error { return fault.Guard(func() error { return f.layOut(ctx) }) })
		group.Go(func() error { return fault.Guard(func() error { return f.drive(ctx) }) })
	}
	// A run that stops must not leave a device waiting for work.
	halt := context.AfterFunc(ctx, r.queue.stop)
	err = group.Wait()
	halt()
	for _, f := range feeders {
		if f.hung {
			continue // it is still inside Run, and cannot be closed
		}
		if closeErr := f.device.Close(); err == nil && !f.gone.Load() {
			err = closeErr
		}
	}
	return err
}

// selfTest tests the first device, of which the others are copies, and closes all where
// it fails.
func (r *run) selfTest(ctx context.Context, opened []Device) error {
	if r.SelfTest == nil {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	result, err := r.SelfTest(ctx, opened[0])
	if err != nil {
		for _, d := range opened {
			_ = d.Close()
		}
		return err
	}
	r.count.mu.Lock()
	defer r.count.mu.Unlock()
	r.count.tested = &result
	return nil
}

// feeder feeds one device.
type feeder struct {
	r      *run
	number int
	device Device
	inputs chan input
	spare  chan input
	out    chan<- result
	dead   <-chan struct{}
	lost   chan struct{} // closed when the device is given up
	gone   atomic.Bool
	hung   bool
	most   atomic.Int64 // padded tokens of the largest batch it may take, after it ran out of memory
	runner *runner
}

func newFeeder(r *run, number int, d Device, out chan<- result, dead <-chan struct{}) *feeder {
	f := &feeder{r: r, number: number, device: d, inputs: make(chan input), spare: make(chan input, 2), out: out, dead: dead, lost: make(chan struct{})}
	f.spare <- input{}
	f.spare <- input{}
	f.most.Store(math.MaxInt64)
	return f
}

// layOut takes batches and lays them out, one ahead of the device.
func (f *feeder) layOut(ctx context.Context) error {
	defer close(f.inputs)
	for {
		b, ok := f.r.queue.pop(f.gone.Load)
		if !ok {
			return nil
		}
		if !f.lay(ctx, b) {
			f.r.queue.back(b)
			return nil
		}
	}
}

// tooLarge reports whether a batch is to be split before it runs: it is over what the
// device took without running out of memory, or over the limits of this run, as a batch
// of a plan may be that was made with larger ones.
func (f *feeder) tooLarge(b work) bool {
	return len(b.docs) > 1 && (int64(b.padded()) > f.most.Load() || !f.r.Limits.Hold(b.longest, len(b.docs)))
}

// lay writes a batch's token ids row by row into a spare input and hands it on.
func (f *feeder) lay(ctx context.Context, b work) bool {
	var in input
	select {
	case in = <-f.spare:
	case <-f.lost:
		return false
	case <-ctx.Done():
		return false
	}
	in.work = b
	in.ids = grow(in.ids, len(b.docs)*b.longest)
	in.lengths = in.lengths[:0]
	for i, d := range b.docs {
		row := in.ids[i*b.longest : (i+1)*b.longest]
		ids := b.window.ids(d)
		for j, id := range ids {
			row[j] = int64(id)
		}
		for j := len(ids); j < len(row); j++ {
			row[j] = f.r.PadID
		}
		in.lengths = append(in.lengths, int32(len(ids)))
	}
	select {
	case f.inputs <- in:
		return true
	case <-f.lost:
		return false
	case <-ctx.Done():
		return false
	}
}

// drive runs the device's batches until there are none or it is given up. Vectors go
// to the committer even when the run is being stopped: what is computed is
// never thrown away while there is somebody to write it.
func (f *feeder) drive(ctx context.Context) error {
	f.runner = newRunner(f.device)
	defer f.runner.close()
	m := &f.r.count.stages[stageDevices]
	for {
		in, ok := receive(ctx, f.inputs, m)
		if !ok {
			return nil
		}
		done, err := f.run(ctx, in)
		if err != nil {
			return err
		}
		if f.gone.Load() {
			return nil
		}
		if done.vectors != nil {
			select {
			case f.out <- done:
			case <-f.dead:
				return nil
			}
		}
		select {
		case f.spare <- in:
		default:
		}
	}
}

// run runs a batch, again where the policy says so. No vectors and no error mean that
// the batch is split, given up or another device's.
func (f *feeder) run(ctx context.Context, in input) (result, error) {
	if f.tooLarge(in.work) {
		return result{}, f.r.split(in.work, false)
	}
	pause := pauses()
	for {
		release, err := f.r.careful.enter(ctx, f.r.store, in.work)
		if err == nil {
			var vectors []float32
			if vectors, err = f.once(in); err == nil {
				return result{in.work, vectors, release}, nil
			}
			release()
		} else if causeOf(err) != ended {
			return result{}, err
		}
		if ctx.Err() != nil {
			return result{}, context.Cause(ctx)
		}
		again, err := f.failed(&in, err)
		if err != nil || !again {
			return result{}, err
		}
		if err := wait(ctx, pause.NextBackOff()); err != nil {
			return result{}, err
		}
	}
}

// once runs a batch once.
func (f *feeder) once(in input) ([]float32, error) {
	r := f.r
	lengths := in.lengths
	if in.real == in.padded() {
		lengths = nil
	}
	vectors := r.spare.take(len(in.docs) * r.Recipe.Dims)
	end := r.count.stages[stageDevices].begin()
	err := f.runner.run(call{in.ids, len(in.docs), in.longest, lengths, vectors}, r.patience(in.work))
	r.count.ran(f.number, end(), in.work)
	if err == nil {
		err = gate(vectors, r.Recipe.Dims, r.Recipe.Normalize)
	}
	return vectors, err
}

// buffers are reused vectors of results.
type buffers struct{ pool sync.Pool }

func (b *buffers) take(n int) []float32 {
	if v, ok := b.pool.Get().(*[]float32); ok && cap(*v) >= n {
		return (*v)[:n]
	}
	return make([]float32, n)
}

func (b *buffers) give(v []float32) { b.pool.Put(&v) }
