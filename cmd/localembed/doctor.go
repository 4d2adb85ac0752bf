package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"localembed/internal/fault"
	"localembed/internal/onnx"
)

func newDoctor() *cobra.Command {
	var ortLib string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor [DIR...]",
		Short: "Check what a run needs of this machine",
		Long: `Check that ONNX Runtime is found and can be loaded, which devices and how much memory there
are, and that DIR (default: the working folder; give the places of --out and --store) can be
written, can be locked and has space. DIR must exist; what is written there is deleted again.

Exit codes: 0 a run can start here, 1 something is missing, said on stdout with what to do.`,
		Example: "  localembed doctor\n  localembed doctor /data /mnt/nvme",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return doctor(c, ortLib, args, asJSON)
		},
	}
	c.Flags().StringVar(&ortLib, "ort-lib", "", "ONNX Runtime library, a `file` or its folder (default: "+onnx.Env+", then places near the program and the working folder)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON on stdout, and a failure as JSON on the last line of stderr")
	return c
}

// examination is what doctor looked at in one place.
type examination struct {
	What  string `json:"what"` // onnxruntime, cpu, cuda, memory or disk
	OK    bool   `json:"ok"`
	Needs bool   `json:"needed"` // a run on CPUs cannot do without it
	Found string `json:"found"`
	Hint  string `json:"hint"` // what to do where it is not ok
}

func doctor(c *cobra.Command, ortLib string, dirs []string, asJSON bool) error {
	all := append(examineLibrary(ortLib), examineMachine()...)
	for _, dir := range dirs {
		all = append(all, examineFolder(dir))
	}
	ui := newUI(c.OutOrStdout(), c.ErrOrStderr(), false, asJSON)
	if asJSON {
		ui.printJSON(all)
	}
	missing := 0
	for _, e := range all {
		mark := "ok "
		if !e.OK {
			mark = "no "
			if e.Needs {
				missing++
			}
		}
		if asJSON {
			continue
		}
		_, _ = fmt.Fprintf(ui.stdout, "%s %-12s %s\n", mark, e.What, e.Found)
		if e.Hint != "" {
			_, _ = fmt.Fprintf(ui.stdout, "                 %s\n", e.Hint)
		}
	}
	if missing > 0 {
		return fault.New(fault.DeviceUnavailable, "%d things that a run needs are missing", missing).Hinting("each is listed on stdout with what to do")
	}
	return nil
}

// failed is an examination that found a failure.
func failed(what string, needed bool, err error) examination {
	e := fault.Of(err)
	return examination{What: what, Needs: needed, Found: e.Error(), Hint: e.Hint}
}

// examineLibrary loads ONNX Runtime, as a run does, and asks it for CUDA.
func examineLibrary(ortLib string) []examination {
	r, err := onnx.Load(ortLib)
	if err != nil {
		return []examination{failed("onnxruntime", true, err)}
	}
	defer func() { _ = r.Close() }()
	return []examination{
		{What: "onnxruntime", OK: true, Needs: true, Found: fmt.Sprintf("version %s, %s", r.Version(), r.Library())},
		examineCUDA(r.CUDA(), onnx.GPUs()),
	}
}

// examineCUDA is what the library says of CUDA, and how many GPUs there are. Whatever they
// are, a run opens none.
func examineCUDA(library error, gpus int) examination {
	has := "the library has it"
	if library != nil {
		has = library.Error()
	}
	e := failed("cuda", false, errNoCUDA)
	e.Found = fmt.Sprintf("%s; of this machine: %d NVIDIA GPUs, and %s", e.Found, gpus, has)
	return e
}

func examineMachine() []examination {
	cores := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	memory := examination{What: "memory", OK: true, Found: "no limit is known"}
	if n := onnx.Memory(); n < math.MaxInt64 {
		memory.Found = fmt.Sprintf("%.1f GB; sessions take up to a quarter of it", float64(n)/1e9)
	}
	return []examination{
		{What: "cpu", OK: true, Needs: true, Found: fmt.Sprintf("%d cores, one session each where the memory holds as many", cores)},
		memory,
	}
}

// examineFolder writes and locks a file in dir, and asks for its free space.
func examineFolder(dir string) examination {
	free, err := tryFolder(dir)
	if err != nil {
		e := fault.New(fault.IOError, "it cannot be used for --out or --store").In(dir).Because(err).
			Hinting("make the folder, check its permissions, and take a local file system with space")
		return failed("disk", true, e)
	}
	return examination{What: "disk", OK: true, Needs: true, Found: fmt.Sprintf("%s: %.1f GB free, can be written and locked", dir, float64(free)/1e9)}
}

func tryFolder(dir string) (free uint64, err error) {
	probe, err := os.MkdirTemp(dir, ".localembed-doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := os.RemoveAll(probe); err == nil {
			err = e
		}
	}()
	lock, err := vfs.Default.Lock(filepath.Join(probe, "lock"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = lock.Close() }()
	f, err := vfs.Default.Create(filepath.Join(probe, "file"), vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(make([]byte, 1<<16))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err
}
