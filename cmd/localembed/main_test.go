package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"localembed/internal/fault"
	"localembed/internal/onnx"
	"localembed/internal/testenv"
)

// The test binary is localembed and mkcorpus too, so that scripts and the tests
// with signals run real processes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"localembed": func() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) },
		"stubborn":   stubborn,
		"mkcorpus": func() {
			if err := mkcorpus(os.Args[1], os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// TestScripts runs testdata/script: one file a feature, with MiniLM at $MODEL and $INT8.
func TestScripts(t *testing.T) {
	model, int8, library := testenv.Model(t), testenv.Int8(t), testenv.ORT(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODEL", model)
			e.Setenv("INT8", int8)
			e.Setenv(onnx.Env, library)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "field": field, "failure": failure, "agree": agree,
		},
	})
}

// corpusRow is a line of mkcorpus's input; a text that is null or left out is null.
type corpusRow struct {
	ID   int64   `json:"id" parquet:"id"`
	Text *string `json:"text" parquet:"text,optional"`
	Lang string  `json:"lang" parquet:"lang"`
}

// mkcorpus makes a Parquet file of JSON lines. The text "@N" stands for N words, and
// "invalid UTF-8" for such a text.
func mkcorpus(path string, in *os.File) error {
	var rows []corpusRow
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r corpusRow
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if r.Text != nil {
			if n, err := strconv.Atoi(strings.TrimPrefix(*r.Text, "@")); err == nil {
				*r.Text = strings.Repeat("word ", n)
			}
			if *r.Text == "invalid UTF-8" {
				*r.Text = "caf\xe9"
			}
		}
		rows = append(rows, r)
	}
	return parquet.WriteFile(path, rows)
}

// exits runs a command and checks its exit code: exits 3 localembed run …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: exits code command args…")
	}
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// object reads a JSON object from a file, stdout or stderr.
func object(ts *testscript.TestScript, file string) map[string]any {
	var o map[string]any
	if err := json.Unmarshal([]byte(ts.ReadFile(file)), &o); err != nil {
		ts.Fatalf("%s is not one JSON object: %v", file, err)
	}
	return o
}

// field checks a value in a JSON object: field report.json rows_dead_lettered.total 3
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field file name value")
	}
	var v any = object(ts, args[0])
	for _, name := range strings.Split(args[1], ".") {
		o, _ := v.(map[string]any)
		var there bool
		if v, there = o[name]; !there {
			ts.Fatalf("%s has no %s", args[0], args[1])
		}
	}
	if got := fmt.Sprint(v); (got == args[2]) == neg {
		ts.Fatalf("%s of %s is %s, want %s (not: %t)", args[1], args[0], got, args[2], neg)
	}
}

// failure checks that the last line of stderr is the JSON object of a failure:
// failure class message-regexp [hint-regexp]
func failure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: failure class message-regexp [hint-regexp]")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	last := lines[len(lines)-1]
	d := json.NewDecoder(strings.NewReader(last))
	d.DisallowUnknownFields()
	var f struct {
		Class    *string `json:"class"`
		File     *string `json:"file"`
		RowGroup *int64  `json:"row_group"`
		Row      *int64  `json:"row"`
		Message  *string `json:"message"`
		Hint     *string `json:"hint"`
	}
	if err := d.Decode(&f); err != nil {
		ts.Fatalf("the last line of stderr is not the object of a failure (%v): %s", err, last)
	}
	for _, name := range []string{"class", "file", "row_group", "row", "message", "hint"} {
		if !strings.Contains(last, `"`+name+`":`) {
			ts.Fatalf("the failure has no %s: %s", name, last)
		}
	}
	if *f.Class != args[0] {
		ts.Fatalf("class is %s, want %s: %s", *f.Class, args[0], last)
	}
	for i, got := range []*string{f.Message, f.Hint} {
		if len(args) > i+1 && !regexp.MustCompile(args[i+1]).MatchString(*got) {
			ts.Fatalf("%q does not match %q", *got, args[i+1])
		}
	}
}

// agree checks that two JSON objects have the same values under the same names:
// agree plan.json out/report.json name name …
func agree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: agree file file name…")
	}
	a, b := object(ts, args[0]), object(ts, args[1])
	for _, name := range args[2:] {
		x, there := a[name]
		if !there || !reflect.DeepEqual(x, b[name]) {
			ts.Fatalf("%s is %v in %s and %v in %s", name, x, args[0], b[name], args[1])
		}
	}
}

func TestFailuresWithAPlaceAreOneLine(t *testing.T) {
	var b bytes.Buffer
	printErrorJSON(&b, fault.New(fault.CorruptFile, "bad page").In("a\nb.parquet").AtRowGroup(2).AtRow(7))
	want := `{"class":"corrupt_file","file":"a\nb.parquet","row_group":2,"row":7,"message":"a\nb.parquet, row group 2, row 7: bad page","hint":""}` + "\n"
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
}
