// Package fault holds the one error type that reaches a user: a sentence that
// says what failed, where (file, row group, row) and what to do next, with the
// class that decides the exit code.
//
// Every package returns *Error at its boundary, or a plain error that the
// caller wraps into one. Of turns any error into an *Error, so that nothing
// reaches the user without a class.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"
)

// Class names a kind of failure. It is part of the machine interface: `--json`
// prints it, and it decides the exit code.
type Class string

// Classes that end with exit code 2: the call itself has to change.
const (
	Usage        Class = "usage"
	NoSuchFile   Class = "no_such_file"
	NoSuchColumn Class = "no_such_column"
	WrongType    Class = "wrong_type"
	ModelRefused Class = "model_refused"
)

// Interrupted ends with exit code 130: a signal or --stop-after.
const Interrupted Class = "interrupted"

// Classes that end with exit code 1: the run failed and can be resumed.
const (
	NotParquet        Class = "not_parquet"
	TruncatedFile     Class = "truncated_file"
	CorruptFile       Class = "corrupt_file"
	EncryptedFile     Class = "encrypted_file"
	UnsupportedFile   Class = "unsupported_file"
	DeviceUnavailable Class = "device_unavailable"
	DeviceFailed      Class = "device_failed"
	BadVectors        Class = "bad_vectors"
	TooManyFailures   Class = "too_many_failures"
	StoreLocked       Class = "store_locked"
	StoreCorrupt      Class = "store_corrupt"
	StoreVersion      Class = "store_version"
	DiskFull          Class = "disk_full"
	IOError           Class = "io_error"
	Internal          Class = "internal"
)

// Exit codes of the command line.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitLeftOut     = 3
	ExitInterrupted = 130
)

// ExitCode is the process exit code of a failure of this class.
func (c Class) ExitCode() int {
	switch c {
	case Usage, NoSuchFile, NoSuchColumn, WrongType, ModelRefused:
		return ExitUsage
	case Interrupted:
		return ExitInterrupted
	default:
		return ExitFailed
	}
}

// Error is one failure as a user is told it.
type Error struct {
	Class    Class
	File     string // the path as it was opened, "" if none
	RowGroup int64  // -1 if none
	Row      int64  // row within the file, from 0; -1 if none
	Message  string // what failed, without file and hint; lower case, no period
	Hint     string // what to do next, "" if nothing can be done
	Err      error  // the cause, nil if none
}

// New makes an Error with no place and no hint; In, At, Hinting and Because add them.
func New(c Class, format string, args ...any) *Error {
	return &Error{Class: c, RowGroup: -1, Row: -1, Message: fmt.Sprintf(format, args...)}
}

// In names the file.
func (e *Error) In(file string) *Error { e.File = file; return e }

// AtRowGroup names the row group within the file.
func (e *Error) AtRowGroup(n int) *Error { e.RowGroup = int64(n); return e }

// AtRow names the row within the file.
func (e *Error) AtRow(n int64) *Error { e.Row = n; return e }

// Hinting says what the user should do next.
func (e *Error) Hinting(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Because adds the cause.
func (e *Error) Because(err error) *Error { e.Err = err; return e }

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.RowGroup >= 0 {
			fmt.Fprintf(&b, ", row group %d", e.RowGroup)
		}
		if e.Row >= 0 {
			fmt.Fprintf(&b, ", row %d", e.Row)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Of finds the *Error in err's chain, or makes one from what the operating
// system said. It is nil for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var path *fs.PathError
	file := ""
	if errors.As(err, &path) {
		file = path.Path
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return New(Interrupted, "stopped before the end").Because(err).
			Hinting("run the same command again to go on")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return New(DiskFull, "the disk is full").In(file).Because(err).
			Hinting("free some space and run the same command again; what was committed stays")
	case errors.Is(err, syscall.EFBIG):
		return tooLarge().In(file).Because(err)
	case path != nil:
		return New(IOError, "%s", path.Op).In(file).Because(path.Err).
			Hinting("check the path and its permissions, then run the same command again")
	default:
		return New(Internal, "%v", err).
			Hinting("this is a defect of localembed: please report it with this message; the same command can be run again")
	}
}

// tooLarge is the failure of a file that may not grow: by a limit of the process, or
// by what its file system can hold.
func tooLarge() *Error {
	const resume = "run the same command again; what was committed stays"
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err == nil && limit.Cur < math.MaxInt64 {
		return New(DiskFull, "this process may not write files of more than %d bytes", limit.Cur).
			Hinting("raise the limit (`ulimit -f unlimited`) and %s", resume)
	}
	return New(DiskFull, "the file system takes no larger file").
		Hinting("move the folder to another file system and %s", resume)
}

// Is reports whether err carries the class.
func Is(err error, c Class) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == c
}
