package backfill

import (
	"context"
	"log/slog"
	"sync"

	"localembed/internal/checkpoint"
)

const (
	carefulAfter = 2 // deaths in a row without a commit turn a run careful
	aloneAfter   = 3 // deaths in a row at which a batch was alone say that it is the batch
)

// careful finds the batch that ends the process, from the outside: the store counts
// processes that died without a commit between them. After two of them one batch
// runs at a time, noted before it runs, so that the next process knows which it was.
type careful struct {
	mu     sync.Mutex
	on     bool
	before checkpoint.Deaths // what the record said when the process began
	record checkpoint.Deaths // what it says should the process die now
	turn   chan struct{}     // whoever holds it runs a batch
}

// begin counts this process as one that dies.
func (c *careful) begin(store *checkpoint.Store, log *slog.Logger) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before, err = store.Deaths(); err != nil {
		return err
	}
	if c.before.Noted {
		c.before.Times++
		c.before.Noted = false
	}
	c.record = c.before
	c.record.InARow++
	c.turn = make(chan struct{}, 1)
	c.turn <- struct{}{}
	// A batch under suspicion keeps the next run careful, although others were committed.
	if c.on = c.before.InARow >= carefulAfter || c.record.Times > 0; c.on {
		log.Warn("the last processes died while they ran batches: one batch runs at a time, to find the one that does it", "deaths", max(c.before.InARow, c.record.Times))
	}
	return store.PutDeaths(c.record)
}

// alive is called after each commit: a death from now on is the first.
func (c *careful) alive(store *checkpoint.Store) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before.InARow = 0
	if c.record.InARow <= 1 {
		return nil
	}
	c.record.InARow = 1
	return store.PutDeaths(c.record)
}

// end takes back what begin counted: the process did not die.
func (c *careful) end(store *checkpoint.Store) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return store.PutDeaths(c.before)
}

// enter lets a batch run: at once, or in a careful run when no other runs and it is
// noted. The function it returns lets the next one run; it is called when the batch is
// committed or has failed. crashes is the error of a batch that must not run.
func (c *careful) enter(ctx context.Context, store *checkpoint.Store, b work) (done func(), err error) {
	if !c.on {
		return func() {}, nil
	}
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	release := func() { c.turn <- struct{}{} }
	c.mu.Lock()
	defer c.mu.Unlock()
	id := b.id()
	if c.record.Alone != id {
		c.record.Alone, c.record.Times = id, 0
	}
	if c.record.Times >= aloneAfter {
		release()
		return nil, crashes{c.record.Times}
	}
	c.record.Noted = true
	if err := store.PutDeaths(c.record); err != nil {
		release()
		return nil, err
	}
	return func() {
		c.mu.Lock()
		c.record.Noted = false
		c.mu.Unlock()
		release()
	}, nil
}
