package backfill

import (
	"context"
	"testing"

	"localembed/internal/column"
	"localembed/internal/fault"
	"localembed/internal/tokenize"
)

// panicking is a tokenizer with a defect.
type panicking struct{}

func (panicking) Encode(context.Context, *column.Arena, []int32, *tokenize.Tokens) error {
	panic("a drill")
}

// A panic ends the run in whichever goroutine it happens, and the next one goes on.
func TestAPanicAnywhereEndsTheRun(t *testing.T) {
	for name, defect := range map[string]func(*Options){
		"tokenizer": func(o *Options) { o.Tokenizer = panicking{} },
		"devices":   func(o *Options) { o.OpenDevices = func() ([]Device, error) { panic("a drill") } },
		"committer": func(o *Options) { o.Unchanged = func() error { panic("a drill") } },
		"progress":  func(o *Options) { o.Progress = func(Progress) { panic("a drill") } },
	} {
		t.Run(name, func(t *testing.T) {
			folder, rows := fiveWindows(t)
			j := newJob(t, folder)
			o := j.options(context.Background())
			defect(&o)
			if _, err := Run(context.Background(), o); !fault.Is(err, fault.Internal) {
				t.Fatalf("error %v", err)
			}
			j.run()
			j.check(rows)
		})
	}
}
