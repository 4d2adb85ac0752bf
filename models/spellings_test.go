package models

import "testing"

// Of names that say the same, transformers takes one: sentence-transformers' vectors of
// tiny folders with both were compared once.
func TestWhichSpellingCounts(t *testing.T) {
	two, sixteen := 2, 16
	for _, c := range []struct {
		window, local *int
		want          int
	}{{nil, nil, 64}, {nil, &sixteen, 8}, {&two, &sixteen, 2}, {&two, nil, 2}} {
		e := modernBERT(config{ModelType: "modernbert", Layers: 3, Window: c.window, LocalAttention: c.local})
		if got := e.view(1).span; e.wrong != "" || got != (span{c.want, c.want}) {
			t.Errorf("%v: reach %+v, want %d (%s)", c, got, c.want, e.wrong)
		}
	}
	own, authors, epsilon := 5.0, 7.0, 1e-3
	for _, c := range []struct {
		config  config
		theta   float64
		epsilon float64
	}{
		{config{NomicTheta: &authors, NomicEpsilon: &epsilon}, 1000, 1e-12},
		{config{RopeTheta: &own, NomicTheta: &authors}, own, 1e-12},
		{config{NomicHidden: 8, RopeTheta: &own, NomicTheta: &authors, NomicEpsilon: &epsilon}, authors, epsilon},
	} {
		e := nomicBERT(c.config)
		if got := e.view(0).theta; got != c.theta || e.epsilon != c.epsilon {
			t.Errorf("%+v: theta %g, epsilon %g", c, got, e.epsilon)
		}
	}
}
