// Command graph writes to stdout the ONNX graph that localembed runs on a CPU
// for a model folder, for bench/cpu to profile. The graph's weights stay in the
// folder.
package main

import (
	"fmt"
	"os"

	"localembed/models"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "graph:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give one model folder, got %q", args)
	}
	model, err := models.Open(args[0], models.Options{})
	if err != nil {
		return err
	}
	graph, err := model.Graph(false)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(graph.Proto)
	return err
}
