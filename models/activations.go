package models

import "math"

// activation adds an activation function behind a value.
type activation func(n *nodes, x string) string

// encoderActivations are those inside an encoder, by their names in config.json.
// Those that carry weights (prelu, xielu) are left out.
var encoderActivations = map[string]activation{
	"gelu":              func(n *nodes, x string) string { return n.op("Gelu", []string{x}) },
	"gelu_python":       func(n *nodes, x string) string { return n.op("Gelu", []string{x}) },
	"gelu_new":          geluTanh,
	"gelu_pytorch_tanh": geluTanh,
	"gelu_python_tanh":  geluTanh,
	"gelu_accurate":     geluTanh,
	"gelu_fast":         geluTanh, // √(2/π) to ten digits, which is the same number in fp32
	"gelu_10":           func(n *nodes, x string) string { return clip(n, n.op("Gelu", []string{x}), -10, 10) },
	"quick_gelu": func(n *nodes, x string) string {
		return n.op("Mul", []string{x, n.op("Sigmoid", []string{n.op("Mul", []string{x, n.float(1.702)})})})
	},
	"relu":       unary("Relu"),
	"relu2":      relu2,
	"relu6":      func(n *nodes, x string) string { return clip(n, x, 0, 6) },
	"leaky_relu": leakyRelu,
	"silu":       silu,
	"swish":      silu,
	"mish":       mish,
	"hardswish":  hardswish,
	"sigmoid":    unary("Sigmoid"),
	"tanh":       unary("Tanh"),
	"linear":     identity,
	"laplace":    laplace,
}

// denseActivations are those of a Dense module, by the last component of the
// PyTorch class. They keep to operators of set 11, since they may be appended
// to a graph that comes with the model. Softplus and LogSigmoid are left out:
// their kernels have other bits for the last elements of a tensor than for those
// before, so that a vector would depend on its batch.
var denseActivations = map[string]activation{
	"Identity":  identity,
	"Tanh":      unary("Tanh"),
	"ReLU":      unary("Relu"),
	"ReLU6":     func(n *nodes, x string) string { return clip(n, x, 0, 6) },
	"Hardtanh":  func(n *nodes, x string) string { return clip(n, x, -1, 1) },
	"LeakyReLU": leakyRelu,
	"ELU":       elu,
	"CELU":      elu, // the same at their default of alpha, 1
	"SELU":      selu,
	"GELU":      geluErf,
	"SiLU":      silu,
	"Mish":      mish,
	"Hardswish": hardswish,
	"Sigmoid":   unary("Sigmoid"),
	"Softsign":  unary("Softsign"),
}

func identity(_ *nodes, x string) string { return x }

func unary(kind string) activation {
	return func(n *nodes, x string) string { return n.op(kind, []string{x}) }
}

func geluTanh(n *nodes, x string) string {
	return n.op("Gelu", []string{x}, attrString("approximate", "tanh"))
}

// geluErf is gelu for operator sets before 20, which have no Gelu.
func geluErf(n *nodes, x string) string {
	e := n.op("Erf", []string{n.op("Mul", []string{x, n.float(math.Sqrt2 / 2)})})
	half := n.op("Mul", []string{x, n.float(0.5)})
	return n.op("Mul", []string{half, n.op("Add", []string{e, n.float(1)})})
}

func relu2(n *nodes, x string) string {
	y := n.op("Relu", []string{x})
	return n.op("Mul", []string{y, y})
}

func leakyRelu(n *nodes, x string) string {
	return n.op("LeakyRelu", []string{x}, attrFloat("alpha", 0.01))
}

// elu by Exp, since the kernels of Elu and Selu have other bits for the last
// elements of a tensor too.
func elu(n *nodes, x string) string {
	return n.op("Max", []string{x, expm1(n, x)})
}

func selu(n *nodes, x string) string {
	const scale, alpha = 1.0507009873554805, 1.6732632423543772
	y := n.op("Mul", []string{expm1(n, x), n.float(alpha * scale)})
	return n.op("Add", []string{n.op("Mul", []string{n.op("Relu", []string{x}), n.float(scale)}), y})
}

// expm1 is eˣ - 1 where x is negative, else 0.
func expm1(n *nodes, x string) string {
	return n.op("Sub", []string{n.op("Exp", []string{n.op("Min", []string{x, n.float(0)})}), n.float(1)})
}

func silu(n *nodes, x string) string {
	return n.op("Mul", []string{x, n.op("Sigmoid", []string{x})})
}

// mish is x × tanh(log(1 + eˣ)), which is x × (e² + 2e) / (e² + 2e + 2) with
// e = eˣ: the kernel of Softplus has other bits for the last elements of a tensor
// than for those before. From 20 on the factor is 1 in fp32.
func mish(n *nodes, x string) string {
	e := n.op("Exp", []string{n.op("Min", []string{x, n.float(20)})})
	p := n.op("Mul", []string{e, n.op("Add", []string{e, n.float(2)})})
	return n.op("Mul", []string{x, n.op("Div", []string{p, n.op("Add", []string{p, n.float(2)})})})
}

func hardswish(n *nodes, x string) string {
	return n.op("Mul", []string{x, n.op("HardSigmoid", []string{x}, attrFloat("alpha", 1./6), attrFloat("beta", 0.5))})
}

func laplace(n *nodes, x string) string {
	const mean, deviation = 0.707107, 0.282095
	z := n.op("Div", []string{n.op("Sub", []string{x, n.float(mean)}), n.float(deviation * math.Sqrt2)})
	return n.op("Mul", []string{n.op("Add", []string{n.op("Erf", []string{z}), n.float(1)}), n.float(0.5)})
}

func clip(n *nodes, x string, low, high float64) string {
	return n.op("Clip", []string{x, n.float(low), n.float(high)})
}
