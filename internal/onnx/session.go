package onnx

import (
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"localembed/internal/fault"
	"localembed/models"
)

// GraphSource makes the graphs of a model; *models.Model is one.
type GraphSource interface {
	Graph(masked bool) (models.Graph, error)
}

// Session is a device: a graph opened by ONNX Runtime. It is made for one
// goroutine; see the package's rule on threads.
type Session struct {
	name    string
	threads int
	source  GraphSource

	mu     sync.Mutex // Run against Close
	closed bool
	exact  *opened
	masked *opened // nil until the first padded batch

	// Inputs other than the ids, kept between Runs and grown on demand.
	zeros, ones, mask, positions []int64
	narrow                       [][]int32 // per input, for graphs with int32 inputs
}

// opened is one graph in the library's hands.
type opened struct {
	g    models.Graph // without its bytes
	sess *ort.DynamicAdvancedSession
}

// OpenCPU opens a model on the CPU with so many threads. name is what errors
// call the device.
func (r *Runtime) OpenCPU(name string, m GraphSource, threads int) (*Session, error) {
	s := &Session{name: name, threads: threads, source: m}
	exact, err := s.open(false)
	if err != nil {
		return nil, err
	}
	s.exact = exact
	return s, nil
}

// Name is the device's name.
func (s *Session) Name() string { return s.name }

// open builds a graph and hands it to the library.
func (s *Session) open(masked bool) (*opened, error) {
	g, err := s.source.Graph(masked)
	if err != nil {
		return nil, err
	}
	sess, err := s.load(g)
	if err != nil {
		return nil, fault.New(fault.ModelRefused, "%s: ONNX Runtime %s cannot open the model's graph", s.name, ort.GetVersion()).Because(oneLine(err)).
			Hinting("if the graph came with the model, export it again; if localembed built it, report this message")
	}
	g.Proto = nil // the library has its own copy
	return &opened{g: g, sess: sess}, nil
}

func (s *Session) load(g models.Graph) (*ort.DynamicAdvancedSession, error) {
	o, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer o.Destroy()
	for _, set := range []func() error{
		func() error { return o.SetIntraOpNumThreads(s.threads) },
		func() error { return o.SetInterOpNumThreads(1) },
		func() error { return o.SetExecutionMode(ort.ExecutionModeSequential) },
		func() error { return o.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll) },
		// Spinning threads would take the cores from the tokenizer.
		func() error { return o.AddSessionConfigEntry("session.intra_op.allow_spinning", "0") },
		func() error {
			if g.DataDir == "" {
				return nil
			}
			return o.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", g.DataDir)
		},
	} {
		if err := set(); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(g.Inputs))
	for i, in := range g.Inputs {
		names[i] = in.Name
	}
	return ort.NewDynamicAdvancedSessionWithONNXData(g.Proto, names, []string{g.Output}, o)
}

// Run computes the vectors of a batch: ids is [items, length], row-major. With
// nil lengths every text has length tokens; else text i has lengths[i] and the
// rest of its row is padding, whose ids must be valid. The vectors are written
// to out, [items, dim]. An error is an *Error.
func (s *Session) Run(ids []int64, items, length int, lengths []int32, out []float32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.fatal(fault.New(fault.Internal, "a batch was sent to a device that is closed"))
	}
	if err := s.check(ids, items, length, lengths, len(out)); err != nil {
		return s.fatal(err)
	}
	o := s.exact
	if lengths != nil {
		if s.masked == nil {
			m, err := s.open(true)
			if err != nil {
				return s.fatal(fault.Of(err))
			}
			s.masked = m
		}
		o = s.masked
	}
	if err := s.run(o, ids, items, length, lengths, out); err != nil {
		return s.failed(items, length, err)
	}
	return nil
}

// check refuses what would make a kernel read past its tables.
func (s *Session) check(ids []int64, items, length int, lengths []int32, out int) *fault.Error {
	g := s.exact.g
	switch {
	case items < 1 || length < 1 || len(ids) != items*length:
		return fault.New(fault.Internal, "a batch of %d texts of %d tokens came with %d ids", items, length, len(ids))
	case lengths != nil && len(lengths) != items:
		return fault.New(fault.Internal, "a batch of %d texts came with %d lengths", items, len(lengths))
	case out != items*g.Dim:
		return fault.New(fault.BadVectors, "a batch of %d vectors of %d components has room for %d numbers", items, g.Dim, out)
	}
	for _, n := range lengths {
		if n < 1 || int(n) > length {
			return fault.New(fault.Internal, "a text of %d tokens is in a batch of the length %d", n, length)
		}
	}
	vocab := uint64(g.Vocab)
	for _, id := range ids {
		if uint64(id) >= vocab {
			return fault.New(fault.ModelRefused, "the tokenizer gave the id %d, but the model has only %d tokens", id, g.Vocab).
				Hinting("tokenizer.json and the weights do not belong together: fetch the model folder again")
		}
	}
	return nil
}

func (s *Session) run(o *opened, ids []int64, items, length int, lengths []int32, out []float32) error {
	shape := ort.Shape{int64(items), int64(length)}
	values := make([]ort.Value, 0, len(o.g.Inputs))
	defer func() {
		for _, v := range values {
			_ = v.Destroy()
		}
	}()
	for i, in := range o.g.Inputs {
		data := s.feed(in.Role, ids, items, length, lengths)
		var v ort.Value
		var err error
		if in.Int32 {
			v, err = ort.NewTensor(shape, s.narrowed(i, data))
		} else {
			v, err = ort.NewTensor(shape, data)
		}
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	vectors, err := ort.NewTensor(ort.Shape{int64(items), int64(o.g.Dim)}, out)
	if err != nil {
		return err
	}
	defer vectors.Destroy()
	return o.sess.Run(values, []ort.Value{vectors})
}

// Close frees the device. It waits for a Run that is in flight.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, o := range []*opened{s.exact, s.masked} {
		if o == nil {
			continue
		}
		if err := o.sess.Destroy(); err != nil {
			return fault.New(fault.DeviceFailed, "%s: the device could not be closed", s.name).Because(err)
		}
	}
	return nil
}
