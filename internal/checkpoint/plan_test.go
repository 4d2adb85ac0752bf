package checkpoint

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"localembed/internal/fault"
	"localembed/internal/sortpack"
)

func anyPlan() *rapid.Generator[Plan] {
	return rapid.Custom(func(t *rapid.T) Plan {
		count := rapid.IntRange(0, 1<<40)
		docs := rapid.SliceOfN(rapid.Int32Range(0, math.MaxInt32), 1, 20)
		return Plan{
			Limits: sortpack.Limits{
				Tokens: count.Draw(t, "tokens"), Items: count.Draw(t, "items"),
				Cells: count.Draw(t, "cells"), MinTokens: count.Draw(t, "min_tokens"),
			},
			Batches: rapid.SliceOfN(docs, 1, 20).Draw(t, "batches"),
		}
	})
}

func TestPlansComeBackAsTheyWerePut(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs, "/store")
	defer func() { closeStore(t, s) }()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		want := anyPlan().Draw(t, "plan")
		n++
		if err := s.PutPlan(digest(n), want); err != nil {
			t.Fatal(err)
		}
		got, ok, err := s.Plan(digest(n), math.MaxInt32+1)
		if err != nil || !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %t, %v, want %+v", got, ok, err, want)
		}
	})
	want := Plan{Limits: sortpack.CPU(), Batches: [][]int32{{4, 2}, {0}, {3, 1}}}
	if err := s.PutPlan(digest(0), want); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, fs, "/store")
	if got, ok, err := s.Plan(digest(0), 5); err != nil || !ok || !reflect.DeepEqual(got, want) {
		t.Fatalf("after reopening: %+v, %t, %v", got, ok, err)
	}
	if _, ok, err := s.Plan(digest(-1), 5); ok || err != nil {
		t.Fatalf("a window without a plan: %t, %v", ok, err)
	}
}

// A plan that cannot be one stops the run: a wrong plan would compute other batches.
func TestADamagedPlanIsCorrupt(t *testing.T) {
	good := Plan{Batches: [][]int32{{0, 1}, {2}}}.encode()
	for name, v := range map[string][]byte{
		"empty":                        {},
		"another version":              append([]byte{planVersion + 1}, good[1:]...),
		"cut":                          good[:len(good)-1],
		"with more behind it":          append(good[:len(good):len(good)], 0),
		"a batch of nothing":           Plan{Batches: [][]int32{{0}, {}}}.encode(),
		"a document behind the window": Plan{Batches: [][]int32{{0, 3}}}.encode(),
		"a document before it":         append(Plan{Batches: [][]int32{{}}}.encode()[:7], 1, 1),
		"a huge batch":                 append(good[:7:7], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, vfs.NewMem(), "/store")
			defer closeStore(t, s)
			if err := s.write(func(b *pebble.Batch) error { return b.Set(tagged(tagPlan, digest(1)), v, nil) }); err != nil {
				t.Fatal(err)
			}
			p, _, err := s.Plan(digest(1), 3)
			if err == nil {
				t.Fatalf("it was read as %+v", p)
			}
			if e := wantClass(t, err, fault.StoreCorrupt); !strings.Contains(e.Message, "window") {
				t.Errorf("%q does not say which window", e.Message)
			}
		})
	}
}

func FuzzDecodePlan(f *testing.F) {
	f.Add(Plan{}.encode())
	f.Add(Plan{Limits: sortpack.CUDA(), Batches: [][]int32{{0, 1, 2}, {9}, {math.MaxInt32, 3}}}.encode())
	f.Add([]byte{planVersion, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePlan(b)
		if err != nil {
			return
		}
		// Limits of the platform's range only: a plan that is read means one thing.
		again, err := decodePlan(p.encode())
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%x is read as %+v, and that as %+v (%v)", b, p, again, err)
		}
		docs := 0
		for _, batch := range p.Batches {
			docs += len(batch)
		}
		if docs > len(b) {
			t.Fatalf("%d bytes give %d documents", len(b), docs)
		}
	})
}
