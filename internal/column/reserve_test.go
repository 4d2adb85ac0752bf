package column

import (
	"bytes"
	"testing"
)

// TestReservedArenaKeepsValues: within what is reserved nothing moves, and beyond it
// nothing is lost.
func TestReservedArenaKeepsValues(t *testing.T) {
	a := Reserve(1 << 20)
	defer a.Release()
	first := a.Data[:1]
	value := bytes.Repeat([]byte{7}, 1<<19)
	a.Append(value)
	a.Append(value)
	if &first[0] != &a.Data[0] {
		t.Error("the arena moved within what is reserved")
	}
	a.Append([]byte("one more"))
	for i, want := range [][]byte{value, value, []byte("one more")} {
		if !bytes.Equal(a.At(i), want) {
			t.Errorf("value %d is not what was appended", i)
		}
	}
}
