package onnx

import (
	"bufio"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// perSession is what a session takes beside the weights, in bytes: the
// library's arena with the activations of a batch of some thousand tokens.
const perSession = 128 << 20

// CPUSessions says how many single-threaded sessions of a model to open: one a
// core, as many as a quarter of the memory holds, at least one.
func CPUSessions(weightBytes int64) int {
	fit := Memory() / 4 / (weightBytes + perSession)
	return int(max(1, min(int64(min(runtime.NumCPU(), runtime.GOMAXPROCS(0))), fit)))
}

// Memory is the memory, in bytes, that the process may use: the machine's, or what its
// control group leaves it. Where nothing says, memory is no limit.
func Memory() int64 {
	least := int64(math.MaxInt64)
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return least
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				least = min(least, n<<10)
			}
			break
		}
	}
	return least
}
