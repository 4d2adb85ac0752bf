package backfill

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"localembed/internal/corpus"
	"localembed/internal/fault"
	"localembed/internal/key"
	"localembed/internal/publish"
	"localembed/internal/selftest"
)

// reportFile is the report's name in OUT.
const reportFile = "report.json"

// Report says what a run did. Up to TruncatedRows it describes the whole job as
// far as it is published, and from VectorsComputed on this process; tokens count computed
// vectors only. VectorsReused is all of the job's vectors that this process did not
// compute.
type Report struct {
	RowsIn           int64            `json:"rows_in"`
	DocumentsIn      int64            `json:"documents_in"`
	RowsEmbedded     int64            `json:"rows_embedded"` // documents in shards
	RowsDeadLettered map[string]int64 `json:"rows_dead_lettered"`
	UniqueTexts      int64            `json:"unique_texts"` // distinct content keys among the embedded
	TruncatedRows    int64            `json:"truncated_rows"`
	FilesSkipped     int64            `json:"files_skipped"` // with --on-bad-file skip; none of their rows count above
	SkippedFiles     []SkippedFile    `json:"skipped_files"` // in corpus order

	VectorsComputed int64                  `json:"vectors_computed"`
	VectorsReused   int64                  `json:"vectors_reused"`
	Tokens          int64                  `json:"tokens"`
	PaddedTokens    int64                  `json:"padded_tokens"`
	PaddingWaste    float64                `json:"padding_waste"` // 1 − tokens/padded_tokens
	Batches         int64                  `json:"batches"`
	Retries         int64                  `json:"retries"`
	Splits          int64                  `json:"splits"`
	ShardsWritten   int64                  `json:"shards_written"`
	Seconds         float64                `json:"seconds"`
	TokensPerSecond float64                `json:"tokens_per_second"` // from the devices' opening to their last batch
	Stages          map[string]StageReport `json:"stages"`
	Devices         []DeviceReport         `json:"devices"`

	// Reproducibility is what the self-test saw; nil where no device was opened.
	Reproducibility *selftest.Result `json:"reproducibility"`

	ModelRevision string   `json:"model_revision,omitempty"` // the hub's commit, where the model came from a hub
	Warnings      []string `json:"warnings"`                 // what was said of the model before the run

	Recipe   key.Recipe        `json:"recipe"`
	Versions map[string]string `json:"versions"`
	Host     string            `json:"host"`
}

// SkippedFile is a file that was left out, and why.
type SkippedFile struct {
	File     string      `json:"file"` // the path as opened
	Class    fault.Class `json:"class"`
	RowGroup *int64      `json:"row_group"` // nil where the whole file is bad
	Message  string      `json:"message"`
}

// skippedFiles are the files that the corpus left out so far.
func skippedFiles(c *corpus.Corpus) []SkippedFile {
	files := []SkippedFile{}
	for _, s := range c.Skipped() {
		f := SkippedFile{File: s.File.Path, Class: s.Err.Class, Message: s.Err.Error()}
		if s.Err.RowGroup >= 0 {
			f.RowGroup = &s.Err.RowGroup
		}
		files = append(files, f)
	}
	return files
}

// StageReport is a stage's time in seconds. Devices add up over all devices.
type StageReport struct {
	Busy   float64 `json:"busy"`
	Waited float64 `json:"waited"`
}

// DeviceReport is one device's share of the work.
type DeviceReport struct {
	Name      string  `json:"name"`
	Batches   int64   `json:"batches"`
	Tokens    int64   `json:"tokens"`
	BusyShare float64 `json:"busy_share"` // inside Run, of the time from opening to the last batch
	Dropped   string  `json:"dropped"`    // why it was given up, "" if it was not
}

// LeftOut reports whether anything of the corpus has no vector.
func (r *Report) LeftOut() bool { return r.DeadLetters() > 0 || r.FilesSkipped > 0 }

// DeadLetters is the number of documents without a vector.
func (r *Report) DeadLetters() int64 { return r.RowsDeadLettered["total"] }

// report makes the report and writes it to OUT.
func (r *run) report() (*Report, error) {
	unique, err := r.unique.count()
	if err != nil {
		return nil, err
	}
	c := &r.count
	c.mu.Lock()
	defer c.mu.Unlock()
	host, _ := os.Hostname()
	report := &Report{
		RowsIn: c.rows, DocumentsIn: c.documents, RowsEmbedded: c.embedded,
		RowsDeadLettered: deadLetters(c.dead), UniqueTexts: unique, TruncatedRows: c.truncated,
		SkippedFiles:    skippedFiles(r.Corpus),
		VectorsComputed: c.computed, VectorsReused: max(0, unique-c.computed),
		Tokens: c.tokens, PaddedTokens: c.padded, PaddingWaste: waste(c.tokens, c.padded), Batches: c.batches,
		Retries: c.retries, Splits: c.splits,
		ShardsWritten: c.written.Load(), Seconds: time.Since(r.started).Seconds(),
		Stages: map[string]StageReport{}, Devices: []DeviceReport{},
		Reproducibility: c.tested, ModelRevision: r.Meta.Revision, Warnings: append([]string{}, r.Warnings...), Recipe: r.Recipe, Host: host,
		Versions: map[string]string{"localembed": r.Meta.Tool, "onnxruntime": r.Meta.ONNXRuntime, "go": runtime.Version()},
	}
	report.FilesSkipped = int64(len(report.SkippedFiles))
	working := c.last.Sub(c.opened).Seconds()
	if c.tokens > 0 && working > 0 {
		report.TokensPerSecond = float64(c.tokens) / working
	}
	for i := range stages {
		m := &c.stages[i]
		report.Stages[stageNames[i]] = StageReport{
			Busy: time.Duration(m.busy.Load()).Seconds(), Waited: time.Duration(m.waited.Load()).Seconds(),
		}
	}
	for i, name := range c.deviceNames {
		d := DeviceReport{Name: name, Batches: c.deviceBatches[i], Tokens: c.deviceTokens[i], Dropped: c.dropped[i]}
		if working > 0 {
			d.BusyShare = c.deviceBusy[i].Seconds() / working
		}
		report.Devices = append(report.Devices, d)
	}
	return report, outError(r.Out, publish.File(r.fs, filepath.Join(r.Out, reportFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}))
}

// deadLetters lists every class, those without a document too, and the total.
func deadLetters(counted map[string]int64) map[string]int64 {
	all := map[string]int64{"total": 0}
	for _, c := range slices.Concat(inputClasses, deviceClasses) {
		all[c] = counted[c]
		all["total"] += counted[c]
	}
	return all
}

func waste(tokens, padded int64) float64 {
	if padded == 0 {
		return 0
	}
	return 1 - float64(tokens)/float64(padded)
}
