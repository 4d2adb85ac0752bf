package fault

import (
	"errors"
	"testing"
)

func TestGuard(t *testing.T) {
	want := errors.New("x")
	if err := Guard(func() error { return want }); err != want {
		t.Errorf("an error became %v", err)
	}
	var m map[string]int
	if err := Guard(func() error { m["x"] = 1; return nil }); !Is(err, Internal) || Of(err).Hint == "" {
		t.Errorf("a panic became %v", err)
	}
}
