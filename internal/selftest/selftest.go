// Package selftest runs a few fixed texts through a device and says how far its
// vectors can be reproduced. It guarantees that
//
//   - a device that gives numbers which are not finite, or vectors that differ from the
//     ones its model folder says it must give, is refused before anything is computed with it;
//   - the level it reports was seen on this device: it compares bits, not differences
//     below a limit.
//
// # What is run
//
// A text alone is the standard. Then it runs among others of its length, in
// batches of several sizes and at another place; in such a batch twice; in it
// with other neighbours; and padded, among longer texts. Padding adds zeros to sums, which may round otherwise:
// it counts for the level only where the run pads.
//
//	bit-identical in any batch     every one of these gives the same bits
//	identical in the same batch    some differ, but only with the batch's shape: a repeated batch, and
//	                               other neighbours in a batch of the same shape, give the same bits
//	batch dependent                a repeated batch or other neighbours give other bits
//
// # Reference vectors
//
// A model folder may hold localembed.reference.json, texts with the vectors that
// its publisher computed; see reference.go for its format.
package selftest

import (
	"context"
	"math"
	"slices"
	"time"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/tokenize"
)

// Level says how far vectors can be reproduced.
type Level string

// The levels, best first.
const (
	AnyBatch  Level = "bit-identical in any batch"
	SameBatch Level = "identical in the same batch"
	Dependent Level = "batch dependent"
)

// Device computes batches, as backfill's devices do.
type Device interface {
	Name() string
	// Run embeds items texts, each of length ids in ids (row by row), and writes items
	// vectors into out. lengths holds the real lengths, or is nil where all have length.
	Run(ids []int64, items, length int, lengths []int32, out []float32) error
}

// Tokenizer turns texts into token ids; see tokenize.Tokenizer.
type Tokenizer interface {
	Encode(ctx context.Context, texts *column.Arena, docs []int32, out *tokenize.Tokens) error
}

// Options say what is tested.
type Options struct {
	Tokenizer Tokenizer
	Dims      int        // components of a vector
	PadID     int64      // fills up the shorter texts of a padded batch
	Padded    bool       // padded batches are tested too
	Pads      bool       // the run makes padded batches, so that they count for the level
	Thorough  bool       // more sizes and a longer length: seconds instead of a fraction of one for a small model
	Reference *Reference // nil if there is none
}

// Seen is a level, and the largest difference between components of two vectors that
// are the same text's.
type Seen struct {
	Level      Level   `json:"level"`
	Difference float64 `json:"largest_difference"`
}

// lower sets the level, unless it is as low already.
func (s *Seen) lower(l Level) {
	if s.Level != Dependent {
		s.Level = l
	}
}

// Result is what was seen: in the batches that a run makes, and in padded ones.
type Result struct {
	Seen
	Padded    *Seen   `json:"padded"` // nil if they were not tested
	Seconds   float64 `json:"seconds"`
	Reference *Match  `json:"reference"` // nil if nothing was compared
}

// Run tests a device. An error is a *fault.Error of class bad_vectors where a
// vector is not finite, model_refused where it is not the reference's, or the
// device's own.
func Run(ctx context.Context, d Device, o Options) (Result, error) {
	start := time.Now()
	t := &test{d: until{ctx, d}, o: o, Seen: Seen{Level: AnyBatch}}
	texts, _, err := t.tokenize(ctx, fixedTexts)
	if err != nil {
		return Result{}, err
	}
	head := sharedHead(texts)
	sizes, lengths := []int{2, 7}, []int{head + 11}
	if o.Thorough {
		sizes, lengths = []int{2, 3, 8, 31}, []int{head + 4, head + 11, head + 39}
	}
	for _, length := range lengths {
		if err := t.exact(ofLength(texts, length), sizes); err != nil {
			return Result{}, err
		}
	}
	r := Result{Seen: t.Seen}
	if o.Padded || o.Pads {
		t.Seen = Seen{Level: AnyBatch}
		if err := t.padded(texts, head, lengths[len(lengths)-1]); err != nil {
			return Result{}, err
		}
		padded := t.Seen
		r.Padded = &padded
		if o.Pads && padded.Level != AnyBatch {
			r.lower(padded.Level)
			r.Difference = max(r.Difference, padded.Difference)
		}
	}
	if o.Reference != nil {
		if r.Reference, err = t.compare(ctx, o.Reference); err != nil {
			return Result{}, err
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// until is a device that takes no batch once the run is being stopped.
type until struct {
	ctx context.Context
	Device
}

func (u until) Run(ids []int64, items, length int, lengths []int32, out []float32) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	return u.Device.Run(ids, items, length, lengths, out)
}

// test is one test of a device.
type test struct {
	Seen
	d Device
	o Options
}

// tokenize gives the ids of each text, and whether it was cut.
func (t *test) tokenize(ctx context.Context, texts []string) (ids [][]int64, truncated []bool, err error) {
	var arena column.Arena
	docs := make([]int32, len(texts))
	for i, s := range texts {
		arena.Append([]byte(s))
		docs[i] = int32(i)
	}
	var tokens tokenize.Tokens
	if err := t.o.Tokenizer.Encode(ctx, &arena, docs, &tokens); err != nil {
		return nil, nil, err
	}
	ids = make([][]int64, len(texts))
	for i := range ids {
		for _, id := range tokens.At(i) {
			ids[i] = append(ids[i], int64(id))
		}
	}
	return ids, tokens.Truncated, nil
}

// exact compares texts of one length alone and in batches of the given sizes.
func (t *test) exact(rows [][]int64, sizes []int) error {
	alone := make([][]float32, len(rows))
	for i, row := range rows {
		v, err := t.run([][]int64{row}, nil)
		if err != nil {
			return err
		}
		alone[i] = v[0]
	}
	for _, size := range sizes {
		var batch [][]int64
		for i := range size {
			batch = append(batch, rows[i%len(rows)])
		}
		first, err := t.run(batch, nil)
		if err != nil {
			return err
		}
		for i, v := range first {
			if t.differ(alone[i%len(rows)], v) {
				t.lower(SameBatch)
			}
		}
		if err := t.repeat(batch, nil, first); err != nil {
			return err
		}
	}
	return nil
}

// repeat runs a batch again as it was, then with its first text at its place and
// other neighbours.
func (t *test) repeat(batch [][]int64, lengths []int32, first [][]float32) error {
	again, err := t.run(batch, lengths)
	if err != nil {
		return err
	}
	for i := range batch {
		if t.differ(first[i], again[i]) {
			t.lower(Dependent)
		}
	}
	others := slices.Clone(batch)
	for i := 1; i < len(others); i++ {
		// Ids of the same texts in another order are texts of their own.
		others[i] = slices.Clone(others[i])
		slices.Reverse(others[i])
		if lengths != nil {
			rotate(others[i], int(lengths[i]))
		}
	}
	neighbours := [][][]int64{others}
	if lengths == nil {
		// Without the largest number of the others, which those still have.
		neighbours = append(neighbours, slices.Repeat(batch[:1], len(batch)))
	}
	for _, n := range neighbours {
		changed, err := t.run(n, lengths)
		if err != nil {
			return err
		}
		if t.differ(first[0], changed[0]) {
			t.lower(Dependent)
		}
	}
	return nil
}

// rotate moves the real tokens of a reversed row, which are its last n, to its start.
func rotate(row []int64, n int) {
	pad := slices.Clone(row[:len(row)-n])
	copy(row, row[len(row)-n:])
	copy(row[n:], pad)
}

// padded compares texts of different lengths alone and in one padded batch. Each is at
// least 3 tokens longer than head, which the pooling may leave out.
func (t *test) padded(texts [][]int64, head, longest int) error {
	rows := ofLength(texts, longest)
	longest = len(rows[0])
	lengths := make([]int32, len(rows))
	batch := make([][]int64, len(rows))
	alone := make([][]float32, len(rows))
	for i, row := range rows {
		n := longest - i*max(0, longest-head-3)/len(rows)
		v, err := t.run([][]int64{row[:n]}, nil)
		if err != nil {
			return err
		}
		alone[i], lengths[i] = v[0], int32(n)
		batch[i] = append(slices.Clone(row[:n]), slices.Repeat([]int64{t.o.PadID}, longest-n)...)
	}
	// The first text, whose neighbours change, is a padded one.
	slices.Reverse(batch)
	slices.Reverse(lengths)
	slices.Reverse(alone)
	first, err := t.run(batch, lengths)
	if err != nil {
		return err
	}
	for i, v := range first {
		if t.differ(alone[i], v) {
			t.lower(SameBatch)
		}
	}
	return t.repeat(batch, lengths, first)
}

// run runs a batch of rows of one length. It refuses numbers that are not finite.
func (t *test) run(rows [][]int64, lengths []int32) ([][]float32, error) {
	out := make([]float32, len(rows)*t.o.Dims)
	if err := t.d.Run(slices.Concat(rows...), len(rows), len(rows[0]), lengths, out); err != nil {
		return nil, err
	}
	for _, v := range out {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fault.New(fault.BadVectors, "%s: the self-test's vectors have numbers that are not finite (%v)", t.d.Name(), v).
				Hinting("the weights are damaged, or too large for the precision: fetch the folder again, or use fp32")
		}
	}
	return slices.Collect(slices.Chunk(out, t.o.Dims)), nil
}

// differ says whether two vectors have different bits, and remembers how far they
// are apart.
func (t *test) differ(a, b []float32) bool {
	different := false
	for i := range a {
		different = different || math.Float32bits(a[i]) != math.Float32bits(b[i])
		t.Difference = max(t.Difference, math.Abs(float64(a[i])-float64(b[i])))
	}
	return different
}
