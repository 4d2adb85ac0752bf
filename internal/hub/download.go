package hub

import (
	"context"
	"crypto/sha1" // git's names of blobs are SHA-1
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/pebble/v2/vfs"

	"localembed/internal/fault"
	"localembed/internal/publish"
)

// How often a request is made that gets no answer or breaks off: the first one fewer
// times, because on a machine without a network every start waits for it.
const (
	listAttempts     = 3
	downloadAttempts = 5
)

// firstPause is the mean pause after the first failure; later ones are longer. Tests
// make it shorter.
var firstPause = time.Second

// retry repeats what found the hub unreachable.
func retry[T any](ctx context.Context, attempts uint, do func() (T, error)) (T, error) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = firstPause
	return backoff.Retry(ctx, func() (T, error) {
		v, err := do()
		var away *unreachable
		if err != nil && !errors.As(err, &away) {
			err = backoff.Permanent(err)
		}
		return v, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(attempts))
}

// bring puts one file into the snapshot, if it is not there; fetched says that it was
// not.
func (c *client) bring(ctx context.Context, in *cache, l *listing, name string, o Options) (fetched bool, err error) {
	f := l.files[name]
	if in.has(l.commit, name, f) {
		return false, nil
	}
	if err := publish.MkdirAll(vfs.Default, filepath.Dir(in.blob(f.etag)), 0o755); err != nil {
		return false, err
	}
	lock, err := in.hold(ctx, f.etag)
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Unlock() }()
	// Another process may have fetched it, or another commit has the same content.
	if st, err := os.Stat(in.blob(f.etag)); err != nil || st.Size() != f.size {
		o.Log.Info("downloading", "model", c.name.Model, "commit", l.commit[:12], "file", name, "bytes", f.size)
		if err := c.download(ctx, in, l.commit, name, f, o); err != nil {
			return false, err
		}
	}
	return true, in.link(l.commit, name, f.etag)
}

// download makes a blob: it appends what is missing to the incomplete file, checks the
// whole and renames it. A file that fails the check is fetched once more from its start.
func (c *client) download(ctx context.Context, in *cache, commit, name string, f remote, o Options) error {
	part := in.blob(f.etag) + ".incomplete"
	path := "/" + c.name.Model + "/resolve/" + commit + "/" + escape(name)
	var sum string
	for range 2 {
		if _, err := retry(ctx, downloadAttempts, func() (struct{}, error) { return struct{}{}, c.append(ctx, part, path, name, f, o) }); err != nil {
			return err
		}
		var err error
		if sum, err = sumOf(part, f); err != nil {
			return err
		}
		if sum == f.etag {
			if err := os.Rename(part, in.blob(f.etag)); err != nil {
				return err
			}
			return publish.SyncDir(vfs.Default, filepath.Dir(part))
		}
		if err := os.Remove(part); err != nil {
			return err
		}
	}
	return fault.New(fault.CorruptFile, "%s arrives from the hub with the checksum %s, not %s", name, sum, f.etag).In(part).
		Hinting("run the same command again; where it stays so, a proxy or mirror changes files: check HF_ENDPOINT")
}

func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// append fetches the rest of an incomplete file and syncs it.
func (c *client) append(ctx context.Context, part, path, name string, f remote, o Options) (err error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	at, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if at > f.size {
		at = 0
	}
	if at < f.size {
		// A connection that stands still is given up, and taken up again.
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		still := time.AfterFunc(patience, func() { cancel(&unreachable{errors.New("nothing arrived for a minute")}) })
		defer still.Stop()
		resp, err := c.get(ctx, path, at)
		if err != nil {
			return cause(ctx, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusPartialContent {
			at = 0
			if resp.StatusCode != http.StatusOK {
				_ = file.Truncate(0)
				return &unreachable{fmt.Errorf("it answers %s", resp.Status)}
			}
		}
		if _, err := file.Seek(at, io.SeekStart); err != nil {
			return err
		}
		if err := file.Truncate(at); err != nil {
			return err
		}
		b := make([]byte, 1<<20)
		for at < f.size {
			n, readErr := resp.Body.Read(b[:min(int64(len(b)), f.size-at)])
			if _, err := file.Write(b[:n]); err != nil {
				return err
			}
			at += int64(n)
			still.Reset(patience)
			if n > 0 && o.Progress != nil {
				o.Progress(Progress{name, at, f.size})
			}
			if readErr != nil && at < f.size {
				if readErr == io.EOF {
					readErr = io.ErrUnexpectedEOF
				}
				return cause(ctx, &unreachable{fmt.Errorf("%s broke off after %d of %d bytes: %w", name, at, f.size, readErr)})
			}
		}
	}
	if err := file.Truncate(f.size); err != nil {
		return err
	}
	return file.Sync()
}

// cause is why ctx ended, where it did, else err.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// sumOf is a file's checksum, of the kind that its etag is.
func sumOf(path string, f remote) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var h hash.Hash
	if len(f.etag) == 2*sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New()
		_, _ = fmt.Fprintf(h, "blob %d\x00", f.size)
	}
	if _, err := io.CopyBuffer(h, file, make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// explain turns what ended a download into what a user is told.
func (s settings) explain(err error, n Name) error {
	var away *unreachable
	if errors.As(err, &away) {
		return fault.New(fault.IOError, "the hub at %s cannot be reached any more", s.endpoint).Because(away.err).
			Hinting("run the same command again: the download of %s goes on where it ended", n.Model)
	}
	return fault.Of(err)
}
