// Package modeltest makes model folders for tests: a tiny BERT with random
// weights, and its vectors by a plain computation in float64 that is written
// down from the architecture's description and shares nothing with the graph.
package modeltest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// BERT is a tiny encoder. Change its fields before Fill.
type BERT struct {
	Vocab, Hidden, Layers, Heads, Inner, Positions int
	Type, Act                                      string
	Eps                                            float64
	Pooling                                        string
	Normalize                                      bool
	Prefix                                         string // in front of the tensors' names

	Weights map[string]Tensor // by the names in the file, after Fill
}

// Tensor is a weight, row-major.
type Tensor struct {
	Shape []int
	Data  []float32
}

// New has two layers, three heads and settings that show in the vectors.
func New() *BERT {
	b := &BERT{Type: "bert", Vocab: 50, Hidden: 24, Layers: 2, Heads: 3, Inner: 40, Positions: 20,
		Act: "gelu", Eps: 0.05, Pooling: "mean", Normalize: true}
	return b
}

// Fill makes the weights, large enough for the softmax and the activation to
// work at their bends.
func (b *BERT) Fill() {
	rng := rand.New(rand.NewPCG(1, 2))
	b.Weights = map[string]Tensor{}
	add := func(name string, scale, mean float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		x := Tensor{shape, make([]float32, n)}
		for i := range x.Data {
			x.Data[i] = float32(rng.NormFloat64()*scale + mean)
		}
		b.Weights[b.Prefix+name] = x
	}
	linear := func(name string, out, in int) {
		add(name+".weight", 0.5, 0, out, in)
		add(name+".bias", 0.5, 0, out)
	}
	norm := func(name string) {
		add(name+".weight", 0.3, 1, b.Hidden)
		add(name+".bias", 0.3, 0, b.Hidden)
	}
	add("embeddings.word_embeddings.weight", 1, 0, b.Vocab, b.Hidden)
	add("embeddings.position_embeddings.weight", 1, 0, b.Positions, b.Hidden)
	add("embeddings.token_type_embeddings.weight", 1, 0, 2, b.Hidden)
	norm("embeddings.LayerNorm")
	for l := range b.Layers {
		p := "encoder.layer." + string(rune('0'+l)) + "."
		for _, n := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			linear(p+n, b.Hidden, b.Hidden)
		}
		norm(p + "attention.output.LayerNorm")
		linear(p+"intermediate.dense", b.Inner, b.Hidden)
		linear(p+"output.dense", b.Hidden, b.Inner)
		norm(p + "output.LayerNorm")
	}
}

// Write lays the model folder out in a temporary folder.
func (b *BERT) Write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("config.json", map[string]any{
		"model_type": b.Type, "vocab_size": b.Vocab, "hidden_size": b.Hidden, "num_hidden_layers": b.Layers,
		"num_attention_heads": b.Heads, "intermediate_size": b.Inner, "hidden_act": b.Act,
		"layer_norm_eps": b.Eps, "max_position_embeddings": b.Positions,
	})
	modules := []map[string]string{
		{"path": "", "type": "sentence_transformers.models.Transformer"},
		{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
	}
	if b.Normalize {
		modules = append(modules, map[string]string{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})
	}
	put("modules.json", modules)
	put("1_Pooling/config.json", map[string]any{"pooling_mode": strings.Split(b.Pooling, "+")})
	put("tokenizer.json", map[string]any{})

	WriteTensors(t, filepath.Join(dir, "model.safetensors"), b.Weights)
	return dir
}

// WriteTensors writes a safetensors file of fp32 numbers, and the folder for it.
func WriteTensors(t testing.TB, path string, weights map[string]Tensor) {
	t.Helper()
	header := map[string]any{}
	var data []byte
	for _, name := range sortedNames(weights) {
		from := len(data)
		for _, v := range weights[name].Data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		header[name] = map[string]any{"dtype": "F32", "shape": weights[name].Shape, "data_offsets": []int{from, len(data)}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	file = append(append(file, head...), data...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
}

func sortedNames(m map[string]Tensor) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Vector computes one text, all of whose ids are real tokens.
func (b *BERT) Vector(ids []int64) []float64 {
	at := func(name string) Tensor { return b.Weights[b.Prefix+name] }
	linear := func(x [][]float64, name string) [][]float64 {
		w, bias := at(name+".weight"), at(name+".bias")
		out, in := w.Shape[0], w.Shape[1]
		y := make([][]float64, len(x))
		for t := range x {
			y[t] = make([]float64, out)
			for o := range out {
				sum := float64(bias.Data[o])
				for i := range in {
					sum += x[t][i] * float64(w.Data[o*in+i])
				}
				y[t][o] = sum
			}
		}
		return y
	}
	// norm is the layer norm of x + y.
	norm := func(x, y [][]float64, name string) [][]float64 {
		w, bias := at(name+".weight"), at(name+".bias")
		z := make([][]float64, len(x))
		for t := range x {
			z[t] = make([]float64, b.Hidden)
			var mean, variance float64
			for i := range z[t] {
				z[t][i] = x[t][i] + y[t][i]
				mean += z[t][i] / float64(b.Hidden)
			}
			for _, v := range z[t] {
				variance += (v - mean) * (v - mean) / float64(b.Hidden)
			}
			for i, v := range z[t] {
				z[t][i] = (v-mean)/math.Sqrt(variance+b.Eps)*float64(w.Data[i]) + float64(bias.Data[i])
			}
		}
		return z
	}
	words, positions := make([][]float64, len(ids)), make([][]float64, len(ids))
	for t, id := range ids {
		words[t], positions[t] = make([]float64, b.Hidden), make([]float64, b.Hidden)
		for i := range b.Hidden {
			words[t][i] = float64(at("embeddings.word_embeddings.weight").Data[int(id)*b.Hidden+i])
			positions[t][i] = float64(at("embeddings.position_embeddings.weight").Data[t*b.Hidden+i]) +
				float64(at("embeddings.token_type_embeddings.weight").Data[i])
		}
	}
	x := norm(words, positions, "embeddings.LayerNorm")
	size := b.Hidden / b.Heads
	for l := range b.Layers {
		p := "encoder.layer." + string(rune('0'+l)) + "."
		q, k, v := linear(x, p+"attention.self.query"), linear(x, p+"attention.self.key"), linear(x, p+"attention.self.value")
		context := make([][]float64, len(ids))
		for t := range ids {
			context[t] = make([]float64, b.Hidden)
			for h := range b.Heads {
				weights := make([]float64, len(ids))
				total := 0.0
				for u := range ids {
					for i := h * size; i < (h+1)*size; i++ {
						weights[u] += q[t][i] * k[u][i]
					}
					weights[u] = math.Exp(weights[u] / math.Sqrt(float64(size)))
					total += weights[u]
				}
				for u := range ids {
					for i := h * size; i < (h+1)*size; i++ {
						context[t][i] += weights[u] / total * v[u][i]
					}
				}
			}
		}
		x = norm(linear(context, p+"attention.output.dense"), x, p+"attention.output.LayerNorm")
		inner := linear(x, p+"intermediate.dense")
		for t := range inner {
			for i, v := range inner[t] {
				inner[t][i] = Activations[b.Act](v)
			}
		}
		x = norm(linear(inner, p+"output.dense"), x, p+"output.LayerNorm")
	}
	var out []float64
	for _, mode := range strings.Split(b.Pooling, "+") {
		out = append(out, Pool(x, mode)...)
	}
	if b.Normalize {
		sum := 0.0
		for _, v := range out {
			sum += v * v
		}
		for i := range out {
			out[i] /= math.Sqrt(sum)
		}
	}
	return out
}
