package sortpack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check fails the test where a plan breaks one of the package's guarantees.
func check(t interface {
	Fatalf(string, ...any)
}, lengths []int32, limits Limits, plan []Batch) {
	seen := make([]bool, len(lengths))
	for i, b := range plan {
		if i > 0 && b.Longest > plan[i-1].Longest {
			t.Fatalf("batch %d is longer (%d) than the one before it (%d)", i, b.Longest, plan[i-1].Longest)
		}
		if len(b.Docs) == 0 {
			t.Fatalf("batch %d is empty", i)
		}
		longest, real := 0, 0
		for j, d := range b.Docs {
			if seen[d] {
				t.Fatalf("document %d stands in two batches", d)
			}
			seen[d] = true
			longest = max(longest, int(lengths[d]))
			real += int(lengths[d])
			if j > 0 {
				prev := b.Docs[j-1]
				if lengths[prev] < lengths[d] || lengths[prev] == lengths[d] && prev > d {
					t.Fatalf("batch %d: document %d after %d breaks the order", i, d, prev)
				}
			}
		}
		if longest != b.Longest {
			t.Fatalf("batch %d says longest %d, it is %d", i, b.Longest, longest)
		}
		if len(b.Docs) > 1 {
			if b.Padded() > limits.Tokens || len(b.Docs) > limits.Items || b.Padded()*b.Longest > limits.Cells {
				t.Fatalf("batch %d of %d × %d breaks a cap of %+v", i, len(b.Docs), b.Longest, limits)
			}
			if float64(b.Padded()) > MaxPadding*float64(real) {
				t.Fatalf("batch %d pads %d tokens to %d", i, real, b.Padded())
			}
		}
		if b.Padded() != real && real >= limits.MinTokens && exactRun(lengths, b) >= limits.MinTokens {
			t.Fatalf("batch %d merges a remainder of at least %d tokens", i, limits.MinTokens)
		}
	}
	if d := slices.Index(seen, false); d >= 0 {
		t.Fatalf("document %d is in no batch", d)
	}
}

// exactRun is the most tokens that documents of one length have in a batch.
func exactRun(lengths []int32, b Batch) int {
	sum, most := map[int32]int{}, 0
	for _, d := range b.Docs {
		sum[lengths[d]] += int(lengths[d])
		most = max(most, sum[lengths[d]])
	}
	return most
}

func drawLimits(t *rapid.T) Limits {
	return Limits{
		Tokens:    rapid.IntRange(1, 5000).Draw(t, "tokens"),
		Items:     rapid.IntRange(1, 100).Draw(t, "items"),
		Cells:     rapid.IntRange(1, 500_000).Draw(t, "cells"),
		MinTokens: rapid.IntRange(1, 3000).Draw(t, "min tokens"),
	}
}

func TestPlanKeepsItsGuarantees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Int32Range(1, 600), 0, 400).Draw(t, "lengths")
		limits := drawLimits(t)
		plan := Plan(lengths, limits)
		check(t, lengths, limits, plan)
		again := Plan(slices.Clone(lengths), limits)
		if fmt.Sprint(plan) != fmt.Sprint(again) {
			t.Fatalf("two plans of the same lengths differ")
		}
	})
}

// Each cap is met exactly at its border, one below and one above it.
func TestCapsAtTheirBorders(t *testing.T) {
	const length, items = 10, 4
	base := Limits{Tokens: 1 << 20, Items: 1 << 20, Cells: 1 << 30, MinTokens: 1}
	for _, off := range []int{-1, 0, 1} {
		for name, limits := range map[string]Limits{
			"tokens": {Tokens: length*items + off, Items: base.Items, Cells: base.Cells, MinTokens: 1},
			"items":  {Tokens: base.Tokens, Items: items + off, Cells: base.Cells, MinTokens: 1},
			"cells":  {Tokens: base.Tokens, Items: base.Items, Cells: length*length*items + off, MinTokens: 1},
		} {
			t.Run(fmt.Sprintf("%s%+d", name, off), func(t *testing.T) {
				lengths := slices.Repeat([]int32{length}, 2*items)
				plan := Plan(lengths, limits)
				check(t, lengths, limits, plan)
				want := items
				if off < 0 {
					want = items - 1
				}
				if name == "items" {
					want = items + off
				}
				if got := len(plan[0].Docs); got != want {
					t.Errorf("first batch has %d documents, want %d", got, want)
				}
			})
		}
	}
}

func TestTiesStayInCorpusOrder(t *testing.T) {
	plan := Plan([]int32{5, 9, 5, 9, 5, 9}, Limits{Tokens: 18, Items: 2, Cells: 1000, MinTokens: 1})
	want := "[{[1 3] 9} {[5] 9} {[0 2] 5} {[4] 5}]"
	if got := fmt.Sprint(plan); got != want {
		t.Errorf("plan is %s, want %s", got, want)
	}
}

func TestSmallRemaindersMerge(t *testing.T) {
	// Lengths 100 and 99 leave small remainders, which pad by under 5 %;
	// length 50 would pad far more and stays alone.
	plan := Plan([]int32{50, 99, 100, 99}, Limits{Tokens: 1000, Items: 100, Cells: 1 << 20, MinTokens: 500})
	want := "[{[2 1 3] 100} {[0] 50}]"
	if got := fmt.Sprint(plan); got != want {
		t.Errorf("plan is %s, want %s", got, want)
	}
	exact := Plan([]int32{50, 99, 100, 99}, Limits{Tokens: 1000, Items: 100, Cells: 1 << 20, MinTokens: 1})
	if got, want := fmt.Sprint(exact), "[{[2] 100} {[1 3] 99} {[0] 50}]"; got != want {
		t.Errorf("with MinTokens 1 the plan is %s, want %s", got, want)
	}
}

// Natural text has lengths close to lognormal; a window of 100 000 must waste
// under 0.5 % with the CUDA limits and nothing with the CPU's.
func TestPaddingOfNaturalLengths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int32, 100_000)
	for i := range lengths {
		lengths[i] = int32(min(512, max(3, math.Exp(random.NormFloat64()*0.75+4.6))))
	}
	for name, c := range map[string]struct {
		limits Limits
		most   float64
	}{"cuda": {CUDA(), 0.005}, "cpu": {CPU(), 0}} {
		plan := Plan(lengths, c.limits)
		check(t, lengths, c.limits, plan)
		real, padded := 0, 0
		for _, b := range plan {
			padded += b.Padded()
			for _, d := range b.Docs {
				real += int(lengths[d])
			}
		}
		waste := 1 - float64(real)/float64(padded)
		t.Logf("%s: %d batches, waste %.4f %%", name, len(plan), 100*waste)
		if waste > c.most {
			t.Errorf("%s: waste is %.3f %%, at most %.3f %% wanted", name, 100*waste, 100*c.most)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 200, 7}, 100, 10, 10_000, 50)
	f.Add([]byte{}, 1, 1, 1, 1)
	f.Add([]byte{255, 255, 255, 1}, 1, 1, 1, 1000)
	f.Fuzz(func(t *testing.T, raw []byte, tokens, items, cells, least int) {
		limits := Limits{max(1, tokens), max(1, items), max(1, cells), max(1, least)}
		if len(raw) > 2000 || limits.Tokens > 1<<30 || limits.Cells > 1<<40 || limits.MinTokens > 1<<30 {
			return
		}
		lengths := make([]int32, len(raw))
		for i, b := range raw {
			lengths[i] = int32(b) + 1
		}
		check(t, lengths, limits, Plan(lengths, limits))
	})
}

func BenchmarkPlan(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int32, 262_144)
	for i := range lengths {
		lengths[i] = int32(min(512, max(3, math.Exp(random.NormFloat64()*0.75+4.6))))
	}
	for b.Loop() {
		Plan(lengths, CUDA())
	}
}
