package backfill

import (
	"errors"
	"fmt"

	"localembed/internal/onnx"
)

// maxAttempts is how often a batch is run before it counts as one that fails
// whatever is done.
const maxAttempts = 5

// maxKilled is how many devices a batch may cost: the second one says that it is the batch.
const maxKilled = 2

// verdict is what becomes of a batch that a device could not run.
type verdict int

const (
	retry  verdict = iota // the same device runs it again, after a pause
	split                 // its halves take its place
	giveUp                // it is one document, which is dead
	drop                  // the device is lost; its halves, or the document, come last in turn
	stop                  // the run ends; nothing of the batch is committed
)

// cause is what a failed run of a batch says.
type cause int

const (
	transient cause = iota
	noMemory
	notANumber
	lost
	ended // the process, again and again
	fatal
)

// causeOf sorts the error of a run.
func causeOf(err error) cause {
	var n notFinite
	if errors.As(err, &n) {
		return notANumber
	}
	var h hung
	if errors.As(err, &h) {
		return lost
	}
	var e crashes
	if errors.As(err, &e) {
		return ended
	}
	switch onnx.KindOf(err) {
	case onnx.Transient:
		return transient
	case onnx.OutOfMemory:
		return noMemory
	case onnx.Lost:
		return lost
	default:
		return fatal
	}
}

// judge is the failure policy: what becomes of a batch of so many documents, after so
// many runs that failed and devices that were lost, this one included; and of which
// class the dead letter is where it is given up.
func judge(c cause, documents, attempts, killed int) (verdict, string) {
	switch c {
	case fatal:
		return stop, ""
	case lost:
		if killed >= maxKilled {
			return stop, ""
		}
		return drop, ""
	case ended:
		if documents > 1 {
			return split, ""
		}
		return giveUp, crashedDevice
	case noMemory:
		if documents > 1 {
			return split, ""
		}
		if attempts < maxAttempts {
			return retry, "" // what else is on the device may have gone
		}
		return giveUp, outOfMemory
	case notANumber:
		if documents > 1 {
			return split, ""
		}
		if attempts < 2 {
			return retry, ""
		}
		return giveUp, nonFinite
	default:
		if attempts < maxAttempts {
			return retry, ""
		}
		if documents > 1 {
			return split, ""
		}
		return giveUp, deviceFailed
	}
}

// notFinite says which text of a batch got a vector with NaN or Inf.
type notFinite struct{ item int }

func (e notFinite) Error() string { return fmt.Sprintf("text %d of the batch got NaN or Inf", e.item) }

// hung says that a device did not come back from a batch.
type hung struct{ after string }

func (e hung) Error() string { return "it did not come back from a batch for " + e.after }

// crashes says that a batch was alone whenever the process died.
type crashes struct{ times int }

func (e crashes) Error() string {
	return fmt.Sprintf("the process died %d times in a row while it ran this alone", e.times)
}
