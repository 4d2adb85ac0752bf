package modeltest

import "math"

// Activations by their names in config.json, as their papers define them.
var Activations = map[string]func(float64) float64{
	"gelu":              gelu,
	"gelu_python":       gelu,
	"gelu_new":          geluTanh,
	"gelu_pytorch_tanh": geluTanh,
	"gelu_python_tanh":  geluTanh,
	"gelu_accurate":     geluTanh,
	"gelu_fast":         geluTanh,
	"gelu_10":           func(v float64) float64 { return min(max(gelu(v), -10), 10) },
	"quick_gelu":        func(v float64) float64 { return v * sigmoid(1.702*v) },
	"relu":              func(v float64) float64 { return max(v, 0) },
	"relu2":             func(v float64) float64 { return max(v, 0) * max(v, 0) },
	"relu6":             func(v float64) float64 { return min(max(v, 0), 6) },
	"leaky_relu":        func(v float64) float64 { return max(v, 0.01*v) },
	"silu":              func(v float64) float64 { return v * sigmoid(v) },
	"swish":             func(v float64) float64 { return v * sigmoid(v) },
	"mish":              func(v float64) float64 { return v * math.Tanh(softplus(v)) },
	"hardswish":         func(v float64) float64 { return v * min(max(v+3, 0), 6) / 6 },
	"sigmoid":           sigmoid,
	"tanh":              math.Tanh,
	"linear":            func(v float64) float64 { return v },
	"laplace":           func(v float64) float64 { return (1 + math.Erf((v-0.707107)/(0.282095*math.Sqrt2))) / 2 },
}

// DenseActivations by the last component of their names in PyTorch.
var DenseActivations = map[string]func(float64) float64{
	"Identity":  Activations["linear"],
	"Tanh":      math.Tanh,
	"ReLU":      Activations["relu"],
	"ReLU6":     Activations["relu6"],
	"Hardtanh":  func(v float64) float64 { return min(max(v, -1), 1) },
	"LeakyReLU": Activations["leaky_relu"],
	"ELU":       func(v float64) float64 { return max(v, math.Expm1(min(v, 0))) },
	"CELU":      func(v float64) float64 { return max(v, math.Expm1(min(v, 0))) },
	"SELU": func(v float64) float64 {
		return 1.0507009873554805 * (max(v, 0) + 1.6732632423543772*math.Expm1(min(v, 0)))
	},
	"GELU":      gelu,
	"SiLU":      Activations["silu"],
	"Mish":      Activations["mish"],
	"Hardswish": Activations["hardswish"],
	"Sigmoid":   sigmoid,
	"Softsign":  func(v float64) float64 { return v / (1 + math.Abs(v)) },
}

func gelu(v float64) float64 { return v * (1 + math.Erf(v/math.Sqrt2)) / 2 }

func geluTanh(v float64) float64 {
	return v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))) / 2
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

func softplus(v float64) float64 { return math.Log1p(math.Exp(v)) }

// Pool makes one vector of the hidden states of a text.
func Pool(x [][]float64, mode string) []float64 {
	out := make([]float64, len(x[0]))
	total := 0.0
	for t := range x {
		weight := 0.0
		switch {
		case mode == "mean", mode == "mean_sqrt_len_tokens", mode == "cls" && t == 0, mode == "lasttoken" && t == len(x)-1:
			weight = 1
		case mode == "weightedmean":
			weight = float64(t + 1)
		}
		total += weight
		for i, v := range x[t] {
			if mode == "max" {
				if t == 0 || v > out[i] {
					out[i] = v
				}
				continue
			}
			out[i] += weight * v
		}
	}
	switch mode {
	case "max":
		return out
	case "mean_sqrt_len_tokens":
		total = math.Sqrt(total)
	}
	for i := range out {
		out[i] /= total
	}
	return out
}
