// Package shard writes a window's vectors as one Parquet file, its dead letters
// as another, and reads both back. It guarantees that
//
//   - a reader of the folder sees a whole file or none (package publish);
//   - the same rows, layout and vectors give the same bytes: there is no time,
//     host or map order in a file;
//   - a vector that is not finite is never written;
//   - a file says in its footer what it was made from: the recipe, the tool,
//     and the shard digest, by which a finished shard is known.
//
// # Files
//
//	OUT/part-NNNNNN.parquet            window N, one row per embedded document, corpus order
//	OUT/failures/part-NNNNNN.parquet   window N's dead letters; absent when there are none
//
// # Columns of a shard
//
//	<id>           as in the corpus; absent when the corpus has none
//	file           required STRING, dictionary
//	row            required INT64, delta
//	chunk          required INT32; only when the text column is a list
//	<kept> …       as in the corpus
//	content_hash   required STRING, 64 hex digits
//	n_tokens       required INT32
//	truncated      required BOOLEAN
//	embedding      required LIST of required FLOAT, byte-stream-split, no statistics
//
// A dead letter has <id>, file, row, chunk (null for a null or empty list), then class STRING, attempts INT32,
// message STRING, text BINARY (first 64 KiB, null for a null text) and
// text_bytes INT64.
//
// Row groups end at 8 MiB of vectors, or of ids and kept values. Pages are
// zstd at its fastest, with a CRC. Only the columns with cheap, exact bounds
// (row numbers, counts, fixed-width ids) have statistics and a column index:
// a kept text of megabytes stays out of the footer.
//
// # Footer metadata
//
//	localembed.format               format version, decimal
//	localembed.recipe               key.Recipe as JSON
//	localembed.model_digest         hex
//	localembed.model_revision       the hub's commit of the model, where it came from a hub
//	localembed.tool                 name and version
//	localembed.onnxruntime          version
//	localembed.device               kind of device
//	localembed.shard_digest         hex; of a dead letters file that of its shard
//	localembed.truncated            rows whose text was cut, decimal (shards only)
//	localembed.failures             "true" (dead letters only)
//	ARROW:schema                    the Arrow schema, where every column has one (shards only):
//	                                embedding is fixed_size_list<float>[dim]
package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/publish"
)

// FormatVersion is the version of the file format. A file with another one is
// not read, and its window is written again.
//
//	1: first version
const FormatVersion = 1

// MetaPrefix starts every footer key of ours but ARROW:schema. A Parquet file
// with such a key was made by localembed.
const MetaPrefix = "localembed."

// Footer keys.
const (
	metaFormat      = MetaPrefix + "format"
	metaRecipe      = MetaPrefix + "recipe"
	metaModelDigest = MetaPrefix + "model_digest"
	metaRevision    = MetaPrefix + "model_revision"
	metaTool        = MetaPrefix + "tool"
	metaRuntime     = MetaPrefix + "onnxruntime"
	metaDevice      = MetaPrefix + "device"
	metaDigest      = MetaPrefix + "shard_digest"
	metaTruncated   = MetaPrefix + "truncated"
	metaFailures    = MetaPrefix + "failures"
	metaArrow       = "ARROW:schema"
)

// FailuresDir is the folder of the dead letters inside OUT.
const FailuresDir = "failures"

// Name is the file name of window index, in OUT and in OUT/failures.
func Name(index int) string { return fmt.Sprintf("part-%06d.parquet", index) }

// Path is the shard of window index.
func Path(fs vfs.FS, out string, index int) string { return fs.PathJoin(out, Name(index)) }

// FailuresPath is the file with the dead letters of window index.
func FailuresPath(fs vfs.FS, out string, index int) string {
	return fs.PathJoin(out, FailuresDir, Name(index))
}

// Part is a file in OUT or in OUT/failures that has a window's name.
type Part struct {
	Index int
	Path  string
}

// List finds the parts in a folder, in window order. A folder that does not
// exist has none. Names alone are looked at: Footer says whose a file is.
func List(vfsys vfs.FS, dir string) ([]Part, error) {
	names, err := vfsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var parts []Part
	for _, name := range names {
		digits, ok := strings.CutPrefix(path.Base(name), "part-")
		if !ok {
			continue
		}
		digits, ok = strings.CutSuffix(digits, ".parquet")
		if !ok || len(digits) < 6 {
			continue
		}
		index, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || Name(int(index)) != path.Base(name) {
			continue
		}
		parts = append(parts, Part{Index: int(index), Path: vfsys.PathJoin(dir, name)})
	}
	slices.SortFunc(parts, func(a, b Part) int { return a.Index - b.Index })
	return parts, nil
}

// Remove deletes the shard of window index and its dead letters, whichever of
// them there are, durably.
func Remove(vfsys vfs.FS, out string, index int) error {
	for _, p := range []string{FailuresPath(vfsys, out, index), Path(vfsys, out, index)} {
		if err := publish.Remove(vfsys, p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
