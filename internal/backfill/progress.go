package backfill

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"localembed/internal/publish"
)

// progressFile is the progress's name in StateDir.
const progressFile = "progress.json"

// Progress is where a run stands.
type Progress struct {
	PID             int       `json:"pid"`
	Host            string    `json:"host"`
	Started         time.Time `json:"started"`
	Updated         time.Time `json:"updated"`
	Rows            int64     `json:"rows"`      // of the corpus
	RowsDone        int64     `json:"rows_done"` // whose vector is in a shard or in the store
	Shards          int64     `json:"shards"`    // published, those of earlier runs too
	Tokens          int64     `json:"tokens"`    // computed by this process
	TokensPerSecond float64   `json:"tokens_per_second"`
	PaddingWaste    float64   `json:"padding_waste"`
	ETASeconds      float64   `json:"eta_seconds"` // -1 while nothing can be said
	Over            bool      `json:"over"`        // the process ended in good order
}

// progress tells Options.Progress every second, and OUT/.localembed/progress.json every ten,
// where the run stands, until stop is closed, and once more then.
func (r *run) progress(stop <-chan struct{}) {
	host, _ := os.Hostname()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 0; ; second++ {
		p := r.now(host)
		if r.Progress != nil {
			r.Progress(p)
		}
		over := false
		select {
		case <-stop:
			over, p.Over = true, true
		default:
		}
		if second%10 == 0 || over {
			// The progress is for watching only: a run does not fail for it.
			_ = publish.File(r.fs, filepath.Join(StateDir(r.Out), progressFile), func(w io.Writer) error {
				return json.NewEncoder(w).Encode(p)
			})
		}
		if over {
			return
		}
		select {
		case <-tick.C:
		case <-stop:
		}
	}
}

func (r *run) now(host string) Progress {
	c := &r.count
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Progress{
		PID: os.Getpid(), Host: host, Started: r.started.UTC(), Updated: time.Now().UTC(),
		Rows: r.Corpus.Rows(), RowsDone: min(c.rows+c.underway, r.Corpus.Rows()), Shards: c.shards,
		Tokens: c.tokens, PaddingWaste: waste(c.tokens, c.padded), ETASeconds: -1,
	}
	if c.tokens > 0 {
		working := time.Since(c.opened).Seconds()
		p.TokensPerSecond = float64(c.tokens) / working
		if c.computed > 0 {
			// What is left is taken to need as much work a row as what was computed.
			p.ETASeconds = float64(max(0, p.Rows-p.RowsDone)) * working / float64(c.computed)
		}
	}
	return p
}
