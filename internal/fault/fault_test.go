package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Exit codes and the spelling of classes are what scripts around localembed rely on.
func TestExitCodes(t *testing.T) {
	for code, classes := range map[int]string{
		2:   "usage no_such_file no_such_column wrong_type model_refused",
		130: "interrupted",
		1: "not_parquet truncated_file corrupt_file encrypted_file unsupported_file device_unavailable device_failed " +
			"bad_vectors too_many_failures store_locked store_corrupt store_version disk_full io_error internal",
	} {
		for _, c := range strings.Fields(classes) {
			if got := Class(c).ExitCode(); got != code {
				t.Errorf("%s ends with exit code %d, want %d", c, got, code)
			}
		}
	}
	constants := []Class{
		Usage, NoSuchFile, NoSuchColumn, WrongType, ModelRefused, Interrupted,
		NotParquet, TruncatedFile, CorruptFile, EncryptedFile, UnsupportedFile, DeviceUnavailable, DeviceFailed,
		BadVectors, TooManyFailures, StoreLocked, StoreCorrupt, StoreVersion, DiskFull, IOError, Internal,
	}
	want := "usage no_such_file no_such_column wrong_type model_refused interrupted not_parquet truncated_file corrupt_file " +
		"encrypted_file unsupported_file device_unavailable device_failed bad_vectors too_many_failures store_locked " +
		"store_corrupt store_version disk_full io_error internal"
	if got := strings.Trim(fmt.Sprint(constants), "[]"); got != want {
		t.Errorf("classes are\n%s, want\n%s", got, want)
	}
}

func TestWhatTheSystemSaysGetsAClass(t *testing.T) {
	_, missing := os.Open("/no/such/file")
	full := &fs.PathError{Op: "write", Path: "/out/part", Err: syscall.ENOSPC}
	ours := New(WrongType, "a column").In("a.parquet")
	for _, c := range []struct {
		name    string
		err     error
		class   Class
		file    string
		message string
	}{
		{"ours", fmt.Errorf("corpus: %w", ours), WrongType, "a.parquet", "a.parquet: a column"},
		{"canceled", fmt.Errorf("read: %w", context.Canceled), Interrupted, "", "stopped before the end: read: context canceled"},
		{"deadline", context.DeadlineExceeded, Interrupted, "", "stopped before the end: context deadline exceeded"},
		{"full", fmt.Errorf("shard: %w", full), DiskFull, "/out/part", "/out/part: the disk is full: shard: write /out/part: no space left on device"},
		{"quota", syscall.EDQUOT, DiskFull, "", "the disk is full: disk quota exceeded"},
		{"too large", &fs.PathError{Op: "write", Path: "/out/part", Err: syscall.EFBIG}, DiskFull, "/out/part", "/out/part: the file system takes no larger file: write /out/part: file too large"},
		{"missing", missing, IOError, "/no/such/file", "/no/such/file: open: no such file or directory"},
		{"other", errors.New("one plus one is three"), Internal, "", "one plus one is three"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Of(c.err)
			if e.Class != c.class || e.File != c.file || e.Error() != c.message {
				t.Errorf("got class %s, file %q, %q", e.Class, e.File, e.Error())
			}
			if c.name != "ours" && e.Hint == "" {
				t.Error("there is no hint")
			}
			if c.class != Internal && c.name != "ours" && c.name != "missing" && !errors.Is(e, c.err) {
				t.Error("the cause is lost")
			}
			if !Is(e, c.class) || !Is(fmt.Errorf("wrapped: %w", e), c.class) || Is(e, "another") {
				t.Error("Is does not find the class")
			}
		})
	}
	if !errors.Is(Of(missing), fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	if Of(nil) != nil || Is(nil, Internal) || Is(errors.New("plain"), Internal) {
		t.Error("nothing and plain errors have a class")
	}
}

func TestSentences(t *testing.T) {
	cause := errors.New("bad checksum")
	for want, e := range map[string]*Error{
		"a page is damaged":                                    New(CorruptFile, "a page is %s", "damaged"),
		"a.parquet: a page":                                    New(CorruptFile, "a page").In("a.parquet"),
		"a.parquet, row group 0: a page":                       New(CorruptFile, "a page").In("a.parquet").AtRowGroup(0),
		"a.parquet, row 0: a page":                             New(CorruptFile, "a page").In("a.parquet").AtRow(0),
		"a.parquet, row group 3, row 77: a page: bad checksum": New(CorruptFile, "a page").In("a.parquet").AtRowGroup(3).AtRow(77).Because(cause),
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
	if e := New(Usage, "m").Hinting("give %d", 3); e.Hint != "give 3" || e.Row != -1 || e.RowGroup != -1 || e.Unwrap() != nil {
		t.Errorf("got %+v", e)
	}
}
