package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"localembed/internal/fault"
)

// flags are the flags that run and plan share, as given.
type flags struct {
	model, out, store string

	text, id string
	keep     []string
	limit    int64

	devices                             string
	batchTokens, batchItems, batchCells int
	window                              int
	windowBytes                         int64

	maxTokens, dims             int
	prompt, promptName, pooling string
	normalize, precision        string
	onnx                        bool

	onLong      string
	onBadFile   string
	retryFailed bool
	maxFailed   float64
	ortLib      string
	yes         bool
	quiet       bool
	stopAfter   time.Duration
	json        bool
}

// register declares the flags with their defaults and the reasons for them.
func (f *flags) register(c *cobra.Command) {
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.model, "model", "", "`model` folder, an ONNX file in one, or org/name[@revision] of a hub, kept in its usual cache; a folder of that name wins, and ./ in front always means a folder (required)")
	s.StringVar(&f.out, "out", "", "output `folder`: new, empty, or of the same job (required)")
	s.StringVar(&f.text, "text", "", "text `column`; dots lead into structs; a list of strings is one document per element (default: the column named text)")
	s.StringVar(&f.id, "id", "", "id `column`: integer, string, UUID or binary (default: a column named id, else none)")
	s.StringSliceVar(&f.keep, "keep", nil, "`columns` to carry into the shards, separated by commas")
	s.Int64Var(&f.limit, "limit", 0, "read the first `N` corpus rows; a later run may raise it (default: all)")
	s.StringVar(&f.devices, "devices", "cpu", "cpu (one single-threaded session per core, as many as a quarter of the memory holds: faster than one session on all cores), cpu:N, or cuda for plan; fake:N,FAULT,… pretends, for drills: docs/reliability.md")
	s.IntVar(&f.batchTokens, "batch-tokens", 0, "padded tokens per batch `N` (default: cpu 512, which stays in a core's cache; cuda 16384)")
	s.IntVar(&f.batchItems, "batch-items", 0, "texts per batch `N` (default: cpu 512, cuda 4096)")
	s.IntVar(&f.batchCells, "batch-cells", 0, "attention cells per batch `N`: texts × longest² (default: cpu 4194304, cuda 67108864)")
	s.IntVar(&f.window, "window", 262_144, "documents per window and shard `N`: sorting this many together makes padding vanish")
	s.Int64Var(&f.windowBytes, "window-bytes", 512<<20, "`bytes` of texts, ids and kept columns at which a window closes early: three windows are in memory")
	f.registerRecipe(c)
	s.StringVar(&f.onLong, "on-long", "truncate", "a text over the token limit: `truncate` cuts and flags it, error makes it a dead letter")
	s.StringVar(&f.onBadFile, "on-bad-file", "stop", "a damaged, encrypted or foreign file: `stop` names it, skip leaves it out whole, lists it in the report and ends with exit code 3; each file is then read twice, to know before its first row")
	s.Float64Var(&f.maxFailed, "max-failed", 1, "stop when devices fail on more of the corpus than this `percent`, and on more than 10 texts, or when most of the first window cannot be embedded, a sign of a wrong column; 100 goes on all the same")
	s.BoolVar(&f.retryFailed, "retry-failed", false, "try the texts again that no device could embed in earlier runs")
	s.StringVar(&f.store, "store", "", "checkpoint `folder` on a local disk, which jobs may share one after the other (default: OUT/.localembed/store)")
	f.registerRuntime(c)
}

// registerRecipe declares the flags that change a vector.
func (f *flags) registerRecipe(c *cobra.Command) {
	s := c.Flags()
	s.IntVar(&f.maxTokens, "max-tokens", 0, "token limit of a text `N`, prompt and special tokens included (default: as the model folder says)")
	s.StringVar(&f.prompt, "prompt", "", "`text` put before every text; '' for none (default: the folder's prompt for documents)")
	s.StringVar(&f.promptName, "prompt-name", "", "the folder's prompt of this `name`")
	s.StringVar(&f.pooling, "pooling", "", "pooling `P` where the folder does not say or is to be overruled: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or several joined by +")
	s.StringVar(&f.normalize, "normalize", "", "whether vectors have length 1, `true or false` (default: as the folder says)")
	s.IntVar(&f.dims, "dims", 0, "keep the first `N` dimensions (default: all)")
	s.StringVar(&f.precision, "precision", "fp32", "`P` of weights and activations: fp32, or fp16, which is made for CUDA")
	s.BoolVar(&f.onnx, "onnx", false, "take the folder's ONNX file even if it has safetensors of a known architecture")
}

// registerRuntime declares the flags of whatever opens a model.
func (f *flags) registerRuntime(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.ortLib, "ort-lib", "", "libonnxruntime `file` (default: LOCALEMBED_ORT_LIB, beside the binary, the project's .cache)")
	s.BoolVar(&f.json, "json", false, "print the result as JSON on stdout, and a failure as JSON on the last line of stderr")
}

// check finds flags that are missing or contradict each other.
func (f *flags) check(c *cobra.Command) error {
	usage := func(format string, args ...any) *fault.Error { return fault.New(fault.Usage, format, args...) }
	switch {
	case f.model == "":
		return usage("--model is missing").Hinting("give a model folder or a hub's org/name; in this project `make model` makes .cache/models/all-MiniLM-L6-v2")
	case f.out == "":
		return usage("--out is missing").Hinting("give a new folder for the shards")
	case f.onLong != "truncate" && f.onLong != "error":
		return usage("--on-long is %q", f.onLong).Hinting("truncate cuts long texts and flags them, error makes them dead letters")
	case f.onBadFile != "stop" && f.onBadFile != "skip":
		return usage("--on-bad-file is %q", f.onBadFile).Hinting("stop names the first bad file and ends, skip leaves bad files out")
	case f.stopAfter < 0 || c.Flags().Changed("stop-after") && f.stopAfter == 0:
		return usage("--stop-after is %s", f.stopAfter).Hinting("give a time above 0, as 55m or 7h30m, or leave it out")
	case f.window < 1 || f.window > 1<<24:
		return usage("--window is %d", f.window).Hinting("a window has 1 to 16777216 documents")
	case f.windowBytes < 1:
		return usage("--window-bytes is %d", f.windowBytes).Hinting("give a number of bytes above 0")
	case c.Flags().Changed("limit") && f.limit == 0:
		return usage("--limit is 0").Hinting("leave it out to read all rows")
	case f.maxFailed < 0 || f.maxFailed > 100:
		return usage("--max-failed is %v", f.maxFailed).Hinting("give a percentage from 0 to 100")
	}
	return f.checkRecipe(c)
}

// checkRecipe finds negative numbers, and contradictions in the flags that change a vector.
func (f *flags) checkRecipe(c *cobra.Command) error {
	usage := func(format string, args ...any) *fault.Error { return fault.New(fault.Usage, format, args...) }
	switch {
	case c.Flags().Changed("prompt") && f.promptName != "":
		return usage("--prompt and --prompt-name exclude each other").Hinting("give the text, or the name of one of the folder's prompts")
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"limit", f.limit}, {"batch-tokens", int64(f.batchTokens)}, {"batch-items", int64(f.batchItems)},
		{"batch-cells", int64(f.batchCells)}, {"max-tokens", int64(f.maxTokens)}, {"dims", int64(f.dims)},
	} {
		if n.value < 0 {
			return usage("--%s is %d", n.flag, n.value).Hinting("leave it out to get its default")
		}
	}
	if _, err := strconv.ParseBool(f.normalize); f.normalize != "" && err != nil {
		return usage("--normalize is %q", f.normalize).Hinting("give true or false")
	}
	return nil
}
