// Command corpus writes a Parquet corpus of the doc comments of the Go standard
// library, for the demo and for measurements:
//
//	go run ./demo/corpus -o corpus.parquet
//
// It has two columns: id, the symbol (net/http.Client.Do, unique), and text,
// its comment. One row stands for one documented symbol, in the order of the
// packages' paths and, within a package, as go/doc sorts them. The sources are
// those of the Go toolchain that runs the program, as built for linux/amd64 on
// every machine, so one toolchain always writes the same bytes.
//
// Larger corpora for measurements are made of the same comments:
//
//	-texts N     exactly N distinct texts of natural lengths: first every
//	             distinct comment, then pairs of comments (see pairs)
//	-long BYTES  a text of BYTES bytes in every 1 024 rows, so that windows have equally many
package main

import (
	"flag"
	"fmt"
	"go/build"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "", "the Parquet `file` to write; its folder is made if it is missing")
	texts := flags.Int("texts", 0, "write exactly `N` distinct texts; 0 writes each documented symbol as it is")
	long := flags.Int("long", 0, "make every 1 024th row a text of this many `bytes`; 0 makes none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *out == "":
		return fmt.Errorf("no file to write: give one with -o FILE")
	case *texts < 0 || *long < 0 || flags.NArg() > 0:
		return fmt.Errorf("-texts and -long take a number from 0, and there are no other arguments")
	}

	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	docs, err := standardLibrary(filepath.Join(build.Default.GOROOT, "src"))
	if err != nil {
		return err
	}
	rows, err := derive(docs, *texts, *long)
	if err != nil {
		return err
	}
	n, err := write(*out, rows)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s: %d texts from %d documented symbols\n", *out, n, len(docs))
	return nil
}
