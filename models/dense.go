package models

import (
	"path/filepath"
	"strings"
)

// step is a module behind the Transformer or the Pooling. It maps rows of one
// width to rows of another.
type step interface {
	add(n *nodes, x string) (string, error)
	out() int // width of a row
}

// dense is a Dense module: a linear layer with an activation, and maybe its
// input added.
type dense struct {
	t        *tensors
	in, size int
	bias     bool
	act      activation
	actName  string
	residual bool
}

func (d *dense) out() int { return d.size }

// dense reads the Dense module in the subfolder sub.
func (f *folder) dense(sub string) (*dense, moduleKeys, error) {
	rel := filepath.Join(sub, "config.json")
	var c struct {
		In         int     `json:"in_features"`
		Out        int     `json:"out_features"`
		Bias       *bool   `json:"bias"`
		Activation *string `json:"activation_function"`
		Residual   bool    `json:"use_residual"`
		moduleKeys
	}
	there, err := f.json(rel, &c)
	if err != nil {
		return nil, c.moduleKeys, err
	}
	if !there {
		return nil, c.moduleKeys, f.refuse(rel, "the configuration of the Dense module is missing")
	}
	if c.In < 1 || c.Out < 1 || c.In > 1<<20 || c.Out > 1<<20 {
		return nil, c.moduleKeys, f.refuse(rel, "in_features is %d and out_features %d", c.In, c.Out)
	}
	class := or(c.Activation, "torch.nn.modules.activation.Tanh")
	d := &dense{in: c.In, size: c.Out, bias: or(c.Bias, true), residual: c.Residual}
	d.actName = class[strings.LastIndexByte(class, '.')+1:]
	d.act = denseActivations[d.actName]
	if d.act == nil || !strings.HasPrefix(class, "torch.nn.") {
		return nil, c.moduleKeys, f.refuse(rel, "the activation %.100q (activation_function) is not supported", class).
			Hinting("supported are %s of torch.nn", names(denseActivations))
	}
	files, err := f.safetensors(sub)
	if err != nil {
		return nil, c.moduleKeys, err
	}
	if files.files == nil {
		return nil, c.moduleKeys, f.noWeights(sub, "the Dense module")
	}
	if d.t, err = f.tensors(files, "linear.weight", ""); err != nil {
		return nil, c.moduleKeys, err
	}
	in, out := int64(c.In), int64(c.Out)
	d.t.want("linear.weight", out, in)
	if d.bias {
		d.t.want("linear.bias", out)
	}
	if d.residual && in != out {
		d.t.want("residual.weight", out, in)
	}
	return d, c.moduleKeys, d.t.refused
}

func (d *dense) add(n *nodes, x string) (string, error) {
	weight, err := d.t.inline(n, "linear.weight")
	if err != nil {
		return "", err
	}
	in := []string{x, weight}
	if d.bias {
		bias, err := d.t.inline(n, "linear.bias")
		if err != nil {
			return "", err
		}
		in = append(in, bias)
	}
	y := d.act(n, n.op("Gemm", in, attrInt("transB", 1)))
	if !d.residual {
		return y, nil
	}
	if d.in != d.size {
		weight, err := d.t.inline(n, "residual.weight")
		if err != nil {
			return "", err
		}
		x = n.op("Gemm", []string{x, weight}, attrInt("transB", 1))
	}
	return n.op("Add", []string{y, x}), nil
}

// normalize scales rows to length 1.
type normalize struct{ width int }

func (s normalize) out() int { return s.width }

// minNorm as torch.nn.functional.normalize.
const minNorm = 1e-12

func (s normalize) add(n *nodes, x string) (string, error) {
	row := n.op("Reshape", []string{x, n.ints(0, 1, -1)})
	column := n.op("Reshape", []string{x, n.ints(0, -1, 1)})
	square := n.op("Reshape", []string{n.op("MatMul", []string{row, column}), n.ints(-1, 1)})
	norm := n.op("Max", []string{n.op("Sqrt", []string{square}), n.float(minNorm)})
	return n.op("Div", []string{x, norm}), nil
}
