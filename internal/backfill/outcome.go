package backfill

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"localembed/internal/checkpoint"
	"localembed/internal/fault"
	"localembed/internal/key"
)

// failed does with a batch what the policy says; true means that the device is to
// run it again.
func (f *feeder) failed(in *input, cause error) (again bool, err error) {
	r, b := f.r, &in.work
	c := causeOf(cause)
	b.attempts++
	var e crashes
	if errors.As(cause, &e) {
		b.attempts = e.times
	}
	if c == lost {
		b.killed++
	}
	verdict, class := judge(c, len(b.docs), b.attempts, b.killed)
	if verdict != retry && verdict != stop {
		r.Log.Warn("a batch failed", "device", f.device.Name(), "texts", len(b.docs), "tokens", b.longest, "attempts", b.attempts, "why", cause.Error())
	}
	switch verdict {
	case retry:
		r.count.add(&r.count.retries, 1)
		return true, nil
	case split:
		if c == noMemory {
			f.most.Store(min(f.most.Load(), int64(b.padded())/2))
		}
		return false, r.split(*b, false)
	case giveUp:
		return false, r.giveUp(*b, checkpoint.Failure{Class: class, Attempts: int32(b.attempts), Message: f.device.Name() + ": " + cause.Error()})
	case drop:
		return false, f.drop(*b, cause)
	default:
		return false, f.stop(*b, c, cause)
	}
}

// split records that a batch is split, and only then puts its halves in its place.
func (r *run) split(b work, last bool) error {
	if err := r.store.PutSplit(b.id()); err != nil {
		return err
	}
	r.count.add(&r.count.splits, 1)
	b.window.left.Add(1)
	r.queue.replace(b.halves(), last)
	return nil
}

// giveUp remembers that a document cannot be embedded, and ends the run where that
// happens to too many.
func (r *run) giveUp(b work, f checkpoint.Failure) error {
	w, doc := b.window, b.docs[0]
	if err := r.store.PutFailures(map[key.Key]checkpoint.Failure{w.keys[doc]: f}); err != nil {
		return err
	}
	if err := r.careful.alive(r.store); err != nil {
		return err
	}
	n := r.count.add(&r.count.gaveUp, 1)
	if most := max(fewFailures, int64(r.MaxFailed/100*float64(r.Corpus.Rows()))); r.MaxFailed < 100 && n > most {
		return fault.New(fault.TooManyFailures, "devices could not embed %d texts (the last one: %s), more than %g %% of the corpus and than %d", n, f.Class, r.MaxFailed, fewFailures).
			In(r.Corpus.Files()[w.File[doc]].Path).AtRow(w.Row[doc]).
			Hinting("OUT/failures says why for each; mend the device or the model and run the same command with --retry-failed, or go on all the same with --max-failed 100")
	}
	w.settle()
	r.queue.settle()
	return nil
}

// fewFailures do not end a run: a percentage of a small corpus is less than one text.
const fewFailures = 10

// drop gives the device up. Its batch comes last in turn, in halves: should it be what
// killed the device, all others are done before it meets a second one.
func (f *feeder) drop(b work, cause error) error {
	if _, ok := cause.(hung); ok {
		f.hung = true
	}
	f.gone.Store(true)
	close(f.lost)
	left := f.r.count.drop(f.number, cause.Error())
	f.r.queue.wake()
	if left == 0 {
		return fault.New(fault.DeviceFailed, "no device is left: %s was lost", f.device.Name()).Because(cause).
			Hinting("what was committed stays: run the same command again when the device is well, or with other --devices")
	}
	f.r.Log.Warn("a device is given up", "device", f.device.Name(), "why", cause.Error(), "left", left)
	if len(b.docs) > 1 {
		return f.r.split(b, true)
	}
	f.r.queue.replace([]work{b}, true)
	return nil
}

// stop is the error of a batch that ends the run.
func (f *feeder) stop(b work, c cause, cause error) error {
	class, what := fault.DeviceFailed, "could not run"
	var e *fault.Error
	if errors.As(cause, &e) {
		class = e.Class
	}
	hint := "run the same command again to go on from what is committed; if it fails at the same place, report it with the model's name"
	if c == lost {
		what = "is the second one that was lost to"
		hint = "these rows may be what kills devices: run again without them, or with other devices; what was committed stays"
	}
	w, last := b.window, b.docs[len(b.docs)-1]
	return fault.New(class, "device %s %s a batch of %d texts of %d tokens, from this row to row %d of window %d", f.device.Name(), what, len(b.docs), b.longest, w.Row[last], w.Index).
		In(f.r.Corpus.Files()[w.File[b.docs[0]]].Path).AtRow(w.Row[b.docs[0]]).Because(cause).Hinting("%s", hint)
}

// pauses are those between the attempts of a batch: full jitter over a time that
// doubles from twice firstPause.
func pauses() *backoff.ExponentialBackOff {
	p := backoff.NewExponentialBackOff()
	p.InitialInterval, p.RandomizationFactor, p.Multiplier, p.MaxInterval = firstPause, 1, 2, 10*time.Second
	return p
}

// firstPause is the mean of the first pause. A variable so that tests need not wait.
var firstPause = 100 * time.Millisecond

// wait pauses, or ends with the run.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
