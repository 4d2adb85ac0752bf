package backfill

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"localembed/internal/fault"
)

// result is a batch that a device has computed.
type result struct {
	work
	vectors []float32 // len(docs) × dim
}

// input is a batch in the form in which a device takes it.
type input struct {
	work
	ids     []int64 // len(docs) × longest, padded with the pad id behind the real tokens
	lengths []int32 // nil where every text has the longest length
}

// devices opens the devices when the first batch is there and feeds them until
// the queue is closed. Each has two goroutines: one lays out the next batch while the
// other, locked to its thread, is inside Run.
func (r *run) devices(ctx context.Context, out chan<- result, dead <-chan struct{}) error {
	first, ok := r.queue.pop()
	if !ok {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // opening a large model takes longer than a signal may take
	}
	opened, err := r.OpenDevices()
	if err != nil {
		return err
	}
	if err := r.selfTest(ctx, opened); err != nil {
		return err
	}
	r.count.open(opened)
	group, ctx := errgroup.WithContext(ctx)
	for i, d := range opened {
		inputs := make(chan input)
		spare := make(chan input, 2)
		spare <- input{}
		spare <- input{}
		group.Go(func() error {
			return guard(func() error {
				defer close(inputs)
				if i == 0 {
					// The batch that made the devices open.
					if !r.lay(ctx, first, spare, inputs) {
						return nil
					}
				}
				for {
					b, ok := r.queue.pop()
					if !ok || !r.lay(ctx, b, spare, inputs) {
						return nil
					}
				}
			})
		})
		group.Go(func() error {
			return guard(func() error { return r.drive(ctx, i, d, inputs, spare, out, dead) })
		})
	}
	err = group.Wait()
	for _, d := range opened {
		if closeErr := d.Close(); err == nil {
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

// lay writes a batch's token ids row by row into a spare input and hands it on.
func (r *run) lay(ctx context.Context, b work, spare <-chan input, out chan<- input) bool {
	var in input
	select {
	case in = <-spare:
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
			row[j] = r.PadID
		}
		in.lengths = append(in.lengths, int32(len(ids)))
	}
	select {
	case out <- in:
		return true
	case <-ctx.Done():
		return false
	}
}

// drive runs one device. Vectors go to the committer even when the run is being
// stopped: what is computed is never thrown away while there is somebody to write it.
func (r *run) drive(ctx context.Context, i int, d Device, inputs <-chan input, spare chan<- input, out chan<- result, dead <-chan struct{}) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := &r.count.stages[stageDevices]
	for {
		in, ok := receive(ctx, inputs, m)
		if !ok {
			return nil
		}
		lengths := in.lengths
		if in.real == len(in.docs)*in.longest {
			lengths = nil
		}
		vectors := r.spare.take(len(in.docs) * r.Recipe.Dims)
		end := m.begin()
		err := d.Run(in.ids, len(in.docs), in.longest, lengths, vectors)
		r.count.ran(i, end(), in.work)
		if err == nil {
			err = finite(vectors, r.Recipe.Dims)
		}
		if err != nil {
			return r.fail(d, in.work, err)
		}
		done := result{work: in.work, vectors: vectors}
		select {
		case spare <- in:
		default:
		}
		select {
		case out <- done:
		case <-dead:
			return nil
		}
	}
}

// notFinite says which text of a batch got a vector with NaN or Inf.
type notFinite struct{ item int }

func (e notFinite) Error() string { return fmt.Sprintf("text %d of the batch got NaN or Inf", e.item) }

// finite is the gate in front of the store: a vector with NaN or Inf is never written.
// Multiplying by zero keeps NaN and turns Inf into NaN, so one sum tells.
func finite(vectors []float32, dim int) error {
	for i := 0; i < len(vectors); i += dim {
		sum := float32(0)
		for _, v := range vectors[i : i+dim] {
			sum += v * 0
		}
		if math.IsNaN(float64(sum)) {
			return notFinite{item: i / dim}
		}
	}
	return nil
}

// fail decides what becomes of a batch that a device could not run. It is the one
// place that decides: every failure ends the run, which can be resumed.
func (r *run) fail(d Device, b work, err error) error {
	doc := b.docs[0]
	class, what := fault.DeviceFailed, "could not run"
	if e, ok := err.(notFinite); ok {
		doc, class, what = b.docs[e.item], fault.BadVectors, "gave a vector that is not finite for"
	}
	if e := fault.Of(err); e.Class != fault.Internal {
		class = e.Class
	}
	w := b.window
	return fault.New(class, "device %s %s a batch of %d × %d tokens that starts with this row", d.Name(), what, len(b.docs), b.longest).
		In(r.Corpus.Files()[w.File[doc]].Path).AtRow(w.Row[doc]).Because(err).
		Hinting("run the same command again to go on; a smaller --batch-tokens takes less memory")
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
