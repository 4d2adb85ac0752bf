package fake

import (
	"strings"
	"testing"
	"time"
)

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults(strings.Split("transient=3,poison=4,nan=5,kill=6,crash=7,memory=8,slow=9ms,die=1:2,hang=2:3,panic=3:4,zero=4:5,count=5:6", ","))
	want := Faults{Transient: 3, Poison: 4, NaN: 5, Kill: 6, Crash: 7, Memory: 8, Slow: 9 * time.Millisecond,
		Die: At{1, 2}, Hang: At{2, 3}, Panic: At{3, 4}, Zero: At{4, 5}, Count: At{5, 6}}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "fire=1", "die", "die=1", "die=1:", "die=x:1", "memory=much", "slow=9"} {
		if _, err := ParseFaults([]string{bad}); err == nil || !strings.Contains(err.Error(), `"`+bad+`"`) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
