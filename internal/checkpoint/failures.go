package checkpoint

import (
	"encoding/json"

	"github.com/cockroachdb/pebble/v2"

	"localembed/internal/key"
)

// Failure is what is remembered of a text that no device could embed, so that it is
// not tried again: by no other run, and for no other row that has the text.
type Failure struct {
	Class    string `json:"class"`
	Attempts int32  `json:"attempts"` // runs on a device
	Message  string `json:"message"`  // a sentence
}

// PutSplit records, before its halves run, that a batch is split, so that a resumed run
// runs the same halves. What is split stays split: the record is a batch id, and costs
// nothing where it never comes again.
func (s *Store) PutSplit(batch [32]byte) error {
	return s.write(func(w *pebble.Batch) error { return w.Set(tagged(tagSplit, batch), nil, nil) })
}

// HasSplit reports whether PutSplit recorded the batch.
func (s *Store) HasSplit(batch [32]byte) (bool, error) { return s.has(tagged(tagSplit, batch)) }

// PutFailures remembers, with one sync, that the texts of some keys cannot be embedded.
func (s *Store) PutFailures(failures map[key.Key]Failure) error {
	return s.write(func(w *pebble.Batch) error {
		for k, f := range failures {
			v, err := json.Marshal(f)
			if err != nil {
				return err
			}
			if err := w.Set(tagged(tagFailure, k), v, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// Failure is what is remembered of a key, if anything is.
func (s *Store) Failure(k key.Key) (f Failure, ok bool, err error) {
	v, ok, err := s.get(tagged(tagFailure, k))
	if err != nil || !ok {
		return f, false, s.wrapped(err)
	}
	if err := json.Unmarshal(v, &f); err != nil {
		return f, false, s.corrupt("what it remembers of %x cannot be read", k)
	}
	return f, true, nil
}

// HasFailures reports whether anything is remembered: hardly ever.
func (s *Store) HasFailures() (bool, error) { return s.hasAny(tagFailure) }

// HasSplits reports whether any batch is recorded as split.
func (s *Store) HasSplits() (bool, error) { return s.hasAny(tagSplit) }

func (s *Store) hasAny(tag byte) (bool, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tag}, UpperBound: []byte{tag + 1}})
	if err != nil {
		return false, s.wrap(err)
	}
	some := it.First()
	return some, s.wrapped(it.Close())
}

// Deaths counts the processes that ended without a commit, one after the other. A
// process that begins with devices adds one, and takes it back when it commits or
// ends in order.
type Deaths struct {
	InARow int      `json:"in_a_row"`
	Alone  [32]byte `json:"alone"`     // id of the batch that ran alone when the last of them died
	Times  int      `json:"times"`     // deaths in a row at which this batch was alone
	Noted  bool     `json:"was_alone"` // whether Alone is one
}

// Deaths is the record of PutDeaths, zero where there is none.
func (s *Store) Deaths() (d Deaths, err error) {
	v, ok, err := s.get([]byte{tagDeaths})
	if err != nil || !ok {
		return d, s.wrapped(err)
	}
	if err := json.Unmarshal(v, &d); err != nil {
		return d, s.corrupt("its record of ended processes cannot be read")
	}
	return d, nil
}

// PutDeaths makes the record durable.
func (s *Store) PutDeaths(d Deaths) error {
	v, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.write(func(w *pebble.Batch) error { return w.Set([]byte{tagDeaths}, v, nil) })
}

func (s *Store) wrapped(err error) error {
	if err == nil {
		return nil
	}
	return s.wrap(err)
}
