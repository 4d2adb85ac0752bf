// Package sortpack turns the token lengths of a window into a batch plan.
//
// It is pure and synchronous: the same lengths and limits give the same plan on
// every machine. It guarantees that every document stands in exactly one
// batch, that no batch of two or more documents breaks a cap (a document that
// breaks one alone is a batch of its own), that batches come longest first, and
// that documents of one length keep corpus order.
//
// # Why per length
//
// A batch whose documents all have one exact length needs no attention mask. It
// wastes nothing, its vectors do not depend on the neighbours' content, and the
// fastest attention kernels run only without a mask. So each length is cut into
// full batches first, and only the remainder of a length (less than one full
// batch) may be merged with remainders of shorter lengths:
//
//	length 9   ■■■■ ■■■■ ■■        two full batches, remainder of 2
//	length 8   ■■■■ ■              one full batch, remainder of 1
//	length 7   ■■                  remainder of 2
//	           remainders of 9 and 8: padded/real = 27/26 = 1.04 → one batch of 3
//
// A remainder with at least MinTokens tokens stays exact, since a device is well
// used by it as it is.
package sortpack

import "slices"

// Version is the version of the planning rule. Plans that are kept on disk
// carry it; it is raised with every change that can change a plan.
const Version = 1

// MaxPadding is the largest padded/real ratio of a merged batch. At 1.05 the
// few merged batches of a window cannot push the window's waste past 0.5 %
// unless they hold more than a tenth of its tokens.
const MaxPadding = 1.05

// Limits are the caps of a batch and the size from which a remainder stays
// exact. All are at least 1.
type Limits struct {
	Tokens    int `json:"tokens"`     // padded tokens: longest × items
	Items     int `json:"items"`      // documents
	Cells     int `json:"cells"`      // attention cells: items × longest²
	MinTokens int `json:"min_tokens"` // a remainder of at least this many tokens stays exact
}

// CPU are the default limits for CPU devices. 512 tokens of activations stay
// in a core's cache, and a small batch costs a CPU nothing, so every batch is
// of one exact length (MinTokens 1).
func CPU() Limits { return Limits{Tokens: 512, Items: 512, Cells: 4 << 20, MinTokens: 1} }

// CUDA are the default limits for CUDA devices. 16 384 tokens fill a large GPU
// and keep windows of 100 000 documents under 0.5 % of waste, which 65 536
// does not; a batch under 4 096 tokens leaves the GPU idle between launches.
func CUDA() Limits { return Limits{Tokens: 16384, Items: 4096, Cells: 64 << 20, MinTokens: 4096} }

// Batch is what a device runs at once.
type Batch struct {
	Docs    []int32 // positions in the lengths given to Plan
	Longest int     // tokens of the longest document, to which the others are padded
}

// Padded is the number of tokens a device computes for the batch.
func (b Batch) Padded() int { return b.Longest * len(b.Docs) }

// capacity is how many documents of a length fit into a batch, at least one.
func (l Limits) capacity(length int) int {
	return max(1, min(l.Items, l.Tokens/length, l.Cells/length/length))
}

// Binding names the limit that ends a full batch of documents of one length.
func (l Limits) Binding(length int) string {
	switch n := l.capacity(length); {
	case l.Items <= n:
		return "batch-items"
	case l.Cells/length/length <= n && l.Cells/length/length < l.Tokens/length:
		return "batch-cells"
	default:
		return "batch-tokens"
	}
}

// Plan cuts documents with the given token lengths (each at least 1) into
// batches. Document i has lengths[i] tokens.
func Plan(lengths []int32, limits Limits) []Batch {
	order := make([]int32, len(lengths))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(lengths[b] - lengths[a]) })

	var batches []Batch
	var merged merger
	for from := 0; from < len(order); {
		length := int(lengths[order[from]])
		to := from
		for to < len(order) && int(lengths[order[to]]) == length {
			to++
		}
		n := limits.capacity(length)
		for ; from+n <= to; from += n {
			batches = append(batches, Batch{Docs: order[from : from+n : from+n], Longest: length})
		}
		rest := order[from:to:to]
		from = to
		switch {
		case len(rest) == 0:
		case len(rest)*length >= limits.MinTokens:
			batches = append(batches, Batch{Docs: rest, Longest: length})
		default:
			merged.add(rest, length, limits)
		}
	}
	batches = append(batches, merged.close()...)
	// Among batches of one length the exact ones come first: they are in the
	// list before the merged ones, and the sort is stable.
	slices.SortStableFunc(batches, func(a, b Batch) int { return b.Longest - a.Longest })
	return batches
}

// merger joins remainders, which come longest first, into batches.
type merger struct {
	done []Batch
	open Batch
	real int // tokens in open without padding
}

func (m *merger) add(rest []int32, length int, limits Limits) {
	if len(m.open.Docs) > 0 {
		items, real := len(m.open.Docs)+len(rest), m.real+len(rest)*length
		if limits.fits(m.open.Longest, items, real) {
			m.open.Docs, m.real = append(m.open.Docs, rest...), real
			return
		}
	}
	m.close()
	m.open = Batch{Docs: slices.Clone(rest), Longest: length}
	m.real = len(rest) * length
}

func (m *merger) close() []Batch {
	if len(m.open.Docs) > 0 {
		m.done, m.open = append(m.done, m.open), Batch{}
	}
	return m.done
}

// fits reports whether a merged batch keeps every cap and the padding ratio.
func (l Limits) fits(longest, items, real int) bool {
	return l.Hold(longest, items) && float64(longest*items) <= MaxPadding*float64(real)
}

// Hold reports whether a batch of so many documents, the longest of so many tokens, keeps
// every cap. Plan makes no other batches, except that a single document may be over them.
func (l Limits) Hold(longest, items int) bool {
	padded := longest * items
	return padded <= l.Tokens && items <= l.Items && padded*longest <= l.Cells
}
