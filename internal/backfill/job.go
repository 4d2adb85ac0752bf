package backfill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/publish"
)

const (
	jobFile    = "job.json"
	jobVersion = 1
	maxJobSize = 64 << 20
)

// Job is what OUT is made from, as job.json records it before the first window:
// with the shards it is all that another machine needs to go on.
type Job struct {
	Version     int        `json:"format_version"`
	Corpus      []string   `json:"corpus"` // arguments, as given
	Files       []JobFile  `json:"files"`
	Model       string     `json:"model"`
	Text        string     `json:"text"` // the column, also where it is the default one
	ID          string     `json:"id"`   // the same; "" is none
	Keep        []string   `json:"keep"`
	ONNX        bool       `json:"onnx"`
	Limit       int64      `json:"limit"` // 0 is none
	OnLong      string     `json:"on_long"`
	OnBadFile   string     `json:"on_bad_file"` // may differ from run to run
	Window      int        `json:"window"`
	WindowBytes int64      `json:"window_bytes"`
	BatchTokens int        `json:"batch_tokens"` // 0 is the device's default, for the others too
	BatchItems  int        `json:"batch_items"`
	BatchCells  int        `json:"batch_cells"`
	Recipe      key.Recipe `json:"recipe"`
}

// JobFile is a corpus file as it was when the run started. Files may change
// between runs; the windows tell what that means.
type JobFile struct {
	Name    string    `json:"file"` // as in the shards' file column
	Rows    int64     `json:"rows"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
	Footer  string    `json:"footer_sha256"`
}

// ReadJob reads OUT/job.json; nil where there is none.
func ReadJob(vfsys vfs.FS, out string) (*Job, error) {
	path := filepath.Join(out, jobFile)
	f, err := vfsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, outError(out, err)
	}
	defer func() { _ = f.Close() }()
	var job Job
	if err := json.NewDecoder(io.LimitReader(f, maxJobSize)).Decode(&job); err != nil {
		return nil, fault.New(fault.Usage, "the job file cannot be read").In(path).Because(err).
			Hinting("is this folder an output of localembed? give another --out, with --store to use the vectors that are there")
	}
	if job.Version != jobVersion {
		return nil, fault.New(fault.Usage, "the job file has format version %d, this localembed reads version %d", job.Version, jobVersion).In(path).
			Hinting("use the localembed that wrote it, or a new --out")
	}
	return &job, nil
}

func writeJob(vfsys vfs.FS, out string, job Job) error {
	job.Version = jobVersion
	return outError(out, publish.File(vfsys, filepath.Join(out, jobFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(job)
	}))
}

// compare refuses a run that would make something else in the same folder, and
// names each difference.
func (j *Job) compare(job Job, out string) error {
	var diffs []string
	differ := func(flag string, was, is any) {
		diffs = append(diffs, fmt.Sprintf("%s was %v and is %v", flag, was, is))
	}
	check := func(flag string, was, is any) {
		if was != is {
			differ(flag, show(was), show(is))
		}
	}
	if !slices.Equal(cleaned(j.Corpus), cleaned(job.Corpus)) {
		differ("the corpus", strings.Join(j.Corpus, " "), strings.Join(job.Corpus, " "))
	}
	if j.Recipe.ModelDigest != job.Recipe.ModelDigest {
		differ("--model", fmt.Sprintf("%s (digest %.12s)", j.Model, j.Recipe.ModelDigest), fmt.Sprintf("%s (digest %.12s)", job.Model, job.Recipe.ModelDigest))
	}
	check("--pooling", j.Recipe.Pooling, job.Recipe.Pooling)
	check("--normalize", j.Recipe.Normalize, job.Recipe.Normalize)
	check("the prompt", j.Recipe.Prompt, job.Recipe.Prompt)
	check("--max-tokens", j.Recipe.MaxTokens, job.Recipe.MaxTokens)
	check("--dims", j.Recipe.Dims, job.Recipe.Dims)
	check("--precision", j.Recipe.Precision, job.Recipe.Precision)
	check("--onnx", j.ONNX, job.ONNX)
	check("--text", j.Text, job.Text)
	check("--id", j.ID, job.ID)
	if !slices.Equal(j.Keep, job.Keep) {
		differ("--keep", strings.Join(j.Keep, ","), strings.Join(job.Keep, ","))
	}
	check("--on-long", j.OnLong, job.OnLong)
	check("--window", j.Window, job.Window)
	check("--window-bytes", j.WindowBytes, job.WindowBytes)
	check("--batch-tokens", orDefault(j.BatchTokens, "the default"), orDefault(job.BatchTokens, "the default"))
	check("--batch-items", orDefault(j.BatchItems, "the default"), orDefault(job.BatchItems, "the default"))
	check("--batch-cells", orDefault(j.BatchCells, "the default"), orDefault(job.BatchCells, "the default"))
	if job.Limit != j.Limit && j.Limit != 0 && (job.Limit == 0 || job.Limit > j.Limit) {
		// The one thing that may grow.
	} else {
		check("--limit, which may only grow,", orDefault(j.Limit, "none"), orDefault(job.Limit, "none"))
	}
	if len(diffs) == 0 {
		return nil
	}
	return fault.New(fault.Usage, "this folder was made with other flags: %s", strings.Join(diffs, "; ")).In(out).
		Hinting("repeat the flags to go on, or give a new --out; its --store may be the store of this job, whose vectors are then not computed again")
}

func show(v any) any {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return v
}

// orDefault shows a flag that was not given by what that means.
func orDefault[N int | int64](n N, absent string) any {
	if n == 0 {
		return unquoted(absent)
	}
	return n
}

// unquoted is a word that show leaves as it is.
type unquoted string

// cleaned makes one spelling of a path out of many: c, c/ and ./c are one folder.
func cleaned(args []string) []string {
	clean := make([]string, len(args))
	for i, a := range args {
		clean[i] = filepath.Clean(a)
	}
	return clean
}

// rows is how many rows the job reads, 0 where an older job.json does not say.
func (j *Job) rows() int64 {
	sum := int64(0)
	for _, f := range j.Files {
		sum += f.Rows
	}
	if j.Limit > 0 {
		sum = min(sum, j.Limit)
	}
	return sum
}

// shrunk refuses a corpus that has lost more than half of its rows, before anything is
// written: more parts would be deleted than are left.
func (j *Job) shrunk(job Job, out string) error {
	was, is := j.rows(), job.rows()
	if 2*is >= was {
		return nil
	}
	return fault.New(fault.Usage, "the corpus had %d rows and has %d: most parts would be deleted", was, is).In(out).
		Hinting("is the corpus complete? --yes deletes what is no longer in it")
}
