package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"localembed/internal/backfill"
	"localembed/internal/fault"
	"localembed/internal/hub"
)

// ui is what a user sees of a run: progress and messages on stderr, results on
// stdout.
type ui struct {
	stdout, stderr io.Writer
	quiet, json    bool
	log            *slog.Logger
	bar            *progressbar.ProgressBar // nil where stderr is no terminal
	last           time.Time
}

func newUI(stdout, stderr io.Writer, quiet, asJSON bool) *ui {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	u := &ui{stdout: stdout, stderr: stderr, quiet: quiet, json: asJSON, last: time.Now()}
	u.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if f, ok := stderr.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		u.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(stderr),
			progressbar.OptionSetWidth(20), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false))
	}
	return u
}

// progress draws a bar on a terminal, and prints a line every ten seconds elsewhere.
func (u *ui) progress(p backfill.Progress) {
	line := fmt.Sprintf("%.0f tokens/s, padding %.2f %%, ETA %s", p.TokensPerSecond, 100*p.PaddingWaste, eta(p.ETASeconds))
	switch {
	case u.quiet:
	case u.bar != nil:
		u.bar.ChangeMax64(max(1, p.Rows))
		u.bar.Describe(line)
		_ = u.bar.Set64(min(p.RowsDone, p.Rows))
	case time.Since(u.last) >= 10*time.Second:
		u.last = time.Now()
		_, _ = fmt.Fprintf(u.stderr, "%d of %d rows, %s\n", p.RowsDone, p.Rows, line)
	}
}

// download prints how far a file of the model is, every ten seconds.
func (u *ui) download(p hub.Progress) {
	if !u.quiet && time.Since(u.last) >= 10*time.Second {
		u.last = time.Now()
		_, _ = fmt.Fprintf(u.stderr, "%s: %.0f of %.0f MB, %d %%\n", p.File, float64(p.Done)/1e6, float64(p.Total)/1e6, 100*p.Done/max(1, p.Total))
	}
}

func (u *ui) end() {
	if u.bar != nil {
		_ = u.bar.Finish()
	}
}

func eta(seconds float64) string {
	if seconds < 0 {
		return "unknown"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// report prints what a run did: for machines on stdout, for people on stderr.
func (u *ui) report(r *backfill.Report, out string) {
	if u.json {
		u.printJSON(r)
		return
	}
	if u.quiet {
		return
	}
	w := u.stdout
	_, _ = fmt.Fprintf(w, "%d of %d documents embedded in %s (%d distinct texts, %d truncated)\n",
		r.RowsEmbedded, r.DocumentsIn, out, r.UniqueTexts, r.TruncatedRows)
	if dead := r.DeadLetters(); dead > 0 {
		_, _ = fmt.Fprintf(w, "%d left out, see %s/failures: %s\n", dead, out, classes(r.RowsDeadLettered))
	}
	u.skipped(r.SkippedFiles)
	_, _ = fmt.Fprintf(w, "%d vectors computed, %d reused; %d tokens in %d batches, padding %.2f %%\n",
		r.VectorsComputed, r.VectorsReused, r.Tokens, r.Batches, 100*r.PaddingWaste)
	_, _ = fmt.Fprintf(w, "%.1f s", r.Seconds)
	if r.TokensPerSecond > 0 {
		_, _ = fmt.Fprintf(w, ", %.0f tokens/s", r.TokensPerSecond)
	}
	for _, d := range r.Devices {
		_, _ = fmt.Fprintf(w, ", %s busy %.1f %%", d.Name, 100*d.BusyShare)
	}
	_, _ = fmt.Fprintln(w)
}

// estimate prints what a run would do.
func (u *ui) estimate(e *backfill.Estimate) {
	if u.json {
		u.printJSON(e)
		return
	}
	w := u.stdout
	if !e.Exact {
		_, _ = fmt.Fprintf(w, "from a sample of %d documents; tokens ± %.2f %%\n", e.Sampled, 100*e.TokenError)
	}
	_, _ = fmt.Fprintf(w, "documents       %d in %d rows, %d to embed, %d left out%s\n", e.DocumentsIn, e.RowsIn, e.RowsEmbedded,
		e.RowsDeadLettered["total"], parenthesized(classes(e.RowsDeadLettered)))
	u.skipped(e.SkippedFiles)
	_, _ = fmt.Fprintf(w, "distinct texts  %d (%d documents repeat one), %d documents truncated\n", e.UniqueTexts, e.Duplicates, e.TruncatedRows)
	_, _ = fmt.Fprintf(w, "done            %d documents; %d vectors to compute\n", e.Done, e.VectorsComputed)
	_, _ = fmt.Fprintf(w, "tokens          %d, padded %d: %.3f %% waste (unsorted batches of 64 would waste %.1f %%)\n",
		e.Tokens, e.PaddedTokens, 100*e.PaddingWaste, 100*e.UnsortedWaste)
	_, _ = fmt.Fprintf(w, "batches         %d in %d shards", e.Batches, e.Shards)
	if e.BindingLimit != "" {
		_, _ = fmt.Fprintf(w, ", bound by --%s", e.BindingLimit)
	}
	_, _ = fmt.Fprintf(w, "\ndisk            at most %.2f GB\n", float64(e.DiskBytes)/1e9)
}

// skipped lists the files that were left out.
func (u *ui) skipped(files []backfill.SkippedFile) {
	const most = 10
	for _, f := range files[:min(len(files), most)] {
		_, _ = fmt.Fprintf(u.stdout, "file left out, %s: %s\n", f.Class, f.Message)
	}
	if len(files) > most {
		_, _ = fmt.Fprintf(u.stdout, "and %d files more are left out; --json lists all\n", len(files)-most)
	}
}

func (u *ui) printJSON(v any) {
	e := json.NewEncoder(u.stdout)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}

// classes lists the dead letter classes that occurred.
func classes(counts map[string]int64) string {
	var list []string
	for c, n := range counts {
		if c != "total" && n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, c))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func parenthesized(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// shower prints failures as people or machines read them.
func shower(w io.Writer, asJSON bool) func(*fault.Error) {
	if asJSON {
		return func(e *fault.Error) { printErrorJSON(w, e) }
	}
	return func(e *fault.Error) { printError(w, e) }
}

func printError(w io.Writer, e *fault.Error) {
	_, _ = fmt.Fprintf(w, "localembed: %s\n", e.Error())
	if e.Hint != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", e.Hint)
	}
}

// placed is a failure as machines read it.
type placed struct {
	Class    fault.Class `json:"class"`
	File     string      `json:"file"`
	RowGroup *int64      `json:"row_group"`
	Row      *int64      `json:"row"`
	Message  string      `json:"message"`
	Hint     string      `json:"hint"`
}

func place(e *fault.Error) placed {
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return placed{e.Class, e.File, known(e.RowGroup), known(e.Row), e.Error(), e.Hint}
}

// printErrorJSON prints one object on one line.
func printErrorJSON(w io.Writer, e *fault.Error) { _ = json.NewEncoder(w).Encode(place(e)) }
