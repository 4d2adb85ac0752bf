package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"localembed/internal/fault"
)

const (
	maxListing = 64 << 20 // bytes; a file takes about 200
	patience   = time.Minute
)

// client speaks to one hub about one model.
type client struct {
	settings
	name Name
	http *http.Client
}

func newClient(s settings, n Name) *client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 20 * time.Second}).DialContext
	t.ResponseHeaderTimeout = patience
	return &client{settings: s, name: n, http: &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 10 {
			return errors.New("redirected more than 10 times")
		}
		// net/http sends it to other ports and to hosts below the first one, too.
		if first := via[0].URL; r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
			r.Header.Del("Authorization")
		}
		return nil
	}}}
}

// unreachable is a request that got no answer, or one that says to come again.
type unreachable struct{ err error }

func (u *unreachable) Error() string { return u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }

// get requests an address of the endpoint, from the byte from on. The answer is 200,
// 206 or, for a from at the end, 416; all else is an error.
func (c *client) get(ctx context.Context, path string, from int64) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.endpoint+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "localembed")
	r.Header.Set("Accept-Encoding", "identity")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if from > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &unreachable{err}
	}
	switch code := resp.StatusCode; {
	case code == http.StatusOK, from > 0 && (code == http.StatusPartialContent || code == http.StatusRequestedRangeNotSatisfiable):
		return resp, nil
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		err = &unreachable{fmt.Errorf("it answers %s", resp.Status)}
	default:
		err = c.refusal(resp)
	}
	_ = resp.Body.Close()
	return nil, err
}

// refusal says what an answer means. The hub does not tell a stranger whether a
// private model exists.
func (c *client) refusal(resp *http.Response) error {
	why := resp.Header.Get("X-Error-Code")
	token := "HF_TOKEN to a token of an account that may read it"
	switch {
	case why == "GatedRepo", resp.StatusCode == http.StatusForbidden:
		return fault.New(fault.ModelRefused, "the hub does not let this account read %s, which is gated or private", c.name.Model).
			Hinting("accept the model's terms on its page at the hub and set %s", token)
	case why == "RevisionNotFound":
		return fault.New(fault.NoSuchFile, "the model %s has no revision %q", c.name.Model, c.name.Revision).
			Hinting("give a branch, a tag or a whole commit that the hub shows for it")
	case resp.StatusCode == http.StatusUnauthorized && c.token != "":
		return fault.New(fault.ModelRefused, "the hub has no model %s for this token, or the token is not valid", c.name.Model).
			Hinting("check the name, or set %s", token)
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusNotFound:
		return fault.New(fault.NoSuchFile, "there is neither such a folder here nor a model %s at the hub %s that may be read", c.name, c.endpoint).
			Hinting("check the name; for a gated or private model set %s", token)
	}
	return fault.New(fault.IOError, "the hub at %s answers %s", c.endpoint, resp.Status).
		Hinting("check HF_ENDPOINT and any proxy, then run the same command again")
}

// listing is the files of a commit.
type listing struct {
	commit string
	files  map[string]remote // by name, as the hub gives it
}

// remote is a file on the hub.
type remote struct {
	size int64
	etag string // SHA-256, or the SHA-1 of git's blob, in hex
}

var checksum = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// list asks what the revision means and which files it has.
func (c *client) list(ctx context.Context) (*listing, error) {
	var answer struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size int64  `json:"size"`
			Blob string `json:"blobId"`
			LFS  *struct {
				SHA256 string `json:"sha256"`
				Size   int64  `json:"size"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	foreign := func(format string, args ...any) error {
		return fault.New(fault.IOError, "the answer of %s about %s is not a hub's: %s", c.endpoint, c.name, fmt.Sprintf(format, args...)).
			Hinting("check HF_ENDPOINT and any proxy, then run the same command again")
	}
	_, err := retry(ctx, listAttempts, func() (struct{}, error) {
		resp, err := c.get(ctx, "/api/models/"+c.name.Model+"/revision/"+url.PathEscape(c.name.Revision)+"?blobs=true", 0)
		if err != nil {
			return struct{}{}, err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxListing+1))
		if err != nil {
			return struct{}{}, &unreachable{err}
		}
		if len(b) > maxListing {
			return struct{}{}, foreign("it has more than %d MB", maxListing>>20)
		}
		if err := json.Unmarshal(b, &answer); err != nil {
			return struct{}{}, foreign("%v", err)
		}
		return struct{}{}, nil
	})
	if err != nil {
		return nil, err
	}
	if !commitID.MatchString(answer.SHA) {
		return nil, foreign("the commit is %.80q", answer.SHA)
	}
	l := &listing{commit: answer.SHA, files: map[string]remote{}}
	for _, s := range answer.Siblings {
		f := remote{s.Size, s.Blob}
		if s.LFS != nil {
			f = remote{s.LFS.Size, s.LFS.SHA256}
		}
		// The name and the checksum become paths in the cache.
		if !filepath.IsLocal(filepath.FromSlash(s.Name)) || strings.ContainsAny(s.Name, "\\\x00") || filepath.Clean(s.Name) != s.Name || s.Name == "." {
			return nil, foreign("the file name %.100q leads out of the model", s.Name)
		}
		if !checksum.MatchString(f.etag) || f.size < 0 {
			return nil, foreign("the file %.100q has the checksum %.80q and %d bytes", s.Name, f.etag, f.size)
		}
		l.files[s.Name] = f
	}
	return l, nil
}
