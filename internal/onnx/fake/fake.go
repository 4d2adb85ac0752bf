// Package fake is a device for tests, in Go alone: it has the methods of
// onnx.Session, and its vectors are a pure function of a text's token ids.
package fake

import (
	"errors"
	"math"
	"sync/atomic"
)

// Device is a fake device. Its methods may be called as those of onnx.Session.
type Device struct {
	DeviceName string
	Number     int // among the devices, from 0
	Dim        int
	Faults     Faults
	// Together makes each vector depend on its whole batch, as kernels do that are
	// chosen by shape: a batch that is put together in another way shows.
	Together bool
	// Before is called at the start of each Run, if it is set; its error is the
	// Run's, and nothing is computed.
	Before func(ids []int64, items, length int, lengths []int32) error

	tries   atomic.Int64
	runs    atomic.Int64
	vectors atomic.Int64
	closed  atomic.Bool
}

// Name is the device's name.
func (d *Device) Name() string { return d.DeviceName }

// Runs is how often Run computed a batch.
func (d *Device) Runs() int64 { return d.runs.Load() }

// Tries is how often Run was called.
func (d *Device) Tries() int64 { return d.tries.Load() }

// Vectors is how many vectors Run computed.
func (d *Device) Vectors() int64 { return d.vectors.Load() }

// Closed reports whether Close was called.
func (d *Device) Closed() bool { return d.closed.Load() }

// Run writes the vectors of a batch, as onnx.Session does. Padding does not count.
func (d *Device) Run(ids []int64, items, length int, lengths []int32, out []float32) error {
	if d.Before != nil {
		if err := d.Before(ids, items, length, lengths); err != nil {
			return err
		}
	}
	n := d.tries.Add(1)
	if err := d.Faults.meet(d, n, ids, items, length); err != nil {
		return err
	}
	if d.closed.Load() || len(ids) != items*length || len(out) != items*d.Dim || (lengths != nil && len(lengths) != items) {
		return errors.New("fake device: the batch's sizes do not fit, or the device is closed")
	}
	for i := range items {
		n := length
		if lengths != nil {
			n = int(lengths[i])
		}
		text := ids[i*length : i*length+n]
		if d.Together {
			text = append(append([]int64{}, text...), ids...)
		}
		Vector(text, out[i*d.Dim:(i+1)*d.Dim])
	}
	d.Faults.spoil(d, n, ids, items, length, out)
	d.runs.Add(1)
	d.vectors.Add(int64(items))
	return nil
}

// Close marks the device closed.
func (d *Device) Close() error {
	d.closed.Store(true)
	return nil
}

// Vector writes the vector of a text, of the length 1, for tests to compare with.
func Vector(ids []int64, out []float32) {
	h := uint64(14695981039346656037)
	for _, id := range ids {
		h = (h ^ uint64(id)) * 1099511628211
	}
	sum := 0.0
	for i := range out {
		// A splitmix64 step gives each component bits of its own.
		h += 0x9e3779b97f4a7c15
		z := (h ^ h>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		out[i] = float32(int32((z^z>>31)>>32)) / (1 << 31)
		sum += float64(out[i]) * float64(out[i])
	}
	norm := float32(math.Sqrt(sum))
	for i := range out {
		out[i] /= norm
	}
}
