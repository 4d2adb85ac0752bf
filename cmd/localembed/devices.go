package main

import (
	"fmt"
	"strconv"
	"strings"

	"localembed/internal/backfill"
	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/onnx/fake"
	"localembed/internal/sortpack"
	"localembed/models"
)

// deviceChoice is what --devices says.
type deviceChoice struct {
	kind  string // cpu, cuda or fake
	count int    // 0 is as many as fit
	// faults of fake devices, for drills.
	faults fake.Faults
}

func parseDevices(s string) (deviceChoice, error) {
	kind, rest, some := strings.Cut(s, ":")
	d := deviceChoice{kind: kind}
	bad := fault.New(fault.Usage, "--devices is %q", s).
		Hinting("give cpu, cpu:N with N sessions, or cuda or cuda:0,2 for plan")
	switch kind {
	case "cuda":
		if some {
			for _, n := range strings.Split(rest, ",") {
				if _, err := strconv.ParseUint(n, 10, 8); err != nil {
					return d, bad
				}
			}
		}
		return d, nil
	case "cpu", "fake":
		if kind == "fake" {
			n, faults, drill := strings.Cut(rest, ",")
			if drill {
				var err error
				if d.faults, err = fake.ParseFaults(strings.Split(faults, ",")); err != nil {
					return d, fault.New(fault.Usage, "--devices is %q: %v", s, err).Hinting("a drill is fake:N,FAULT,… with %s", fake.Syntax)
				}
			}
			rest = n
		}
		if !some {
			return d, nil
		}
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 || n > 1024 {
			return d, bad
		}
		d.count = n
		return d, nil
	default:
		return d, bad
	}
}

// limits are the batch limits: the device's defaults, and what flags say.
func (f *flags) limits(d deviceChoice) sortpack.Limits {
	l := sortpack.CPU()
	if d.kind == "cuda" {
		l = sortpack.CUDA()
	}
	set := func(v *int, flag int) {
		if flag > 0 {
			*v = flag
		}
	}
	set(&l.Tokens, f.batchTokens)
	set(&l.Items, f.batchItems)
	set(&l.Cells, f.batchCells)
	return l
}

// opener gives the function that opens the devices when the first batch is there.
func (d deviceChoice) opener(runtime *onnx.Runtime, m *models.Model) func() ([]backfill.Device, error) {
	return func() (devices []backfill.Device, err error) {
		defer func() {
			if err != nil {
				for _, d := range devices {
					_ = d.Close()
				}
			}
		}()
		count := d.count
		if d.kind == "fake" {
			for i := range max(1, count) {
				devices = append(devices, &fake.Device{DeviceName: fmt.Sprintf("fake:%d", i), Number: i, Faults: d.faults, Dim: m.Recipe.Dims})
			}
			return devices, nil
		}
		if count == 0 {
			count = onnx.CPUSessions(m.WeightBytes)
		}
		for i := range count {
			s, err := runtime.OpenCPU(fmt.Sprintf("cpu:%d", i), m, 1)
			if err != nil {
				return devices, err
			}
			devices = append(devices, s)
		}
		return devices, nil
	}
}
