// Package hubtest serves folders as a model hub does, for tests: the listing of a
// revision with checksums, small files by the hub itself, and large ones by a second
// host that it redirects to.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is what a client asked.
type Request struct {
	Path, Range, Token string
	Large              bool // it reached the second host
}

// Server is a hub. The exported fields may be set between requests.
type Server struct {
	URL string

	mu       sync.Mutex
	models   map[string]map[string]map[string][]byte // by id and revision: files
	requests []Request
	answer   func(http.ResponseWriter, *http.Request, []byte) bool
	Token    string            // that every request needs, "" for none
	Gated    bool              // the token does not suffice
	Names    map[string]string // names to give in listings in place of the real ones
}

// New starts a hub, which ends with the test.
func New(t testing.TB) *Server {
	s := &Server{models: map[string]map[string]map[string][]byte{}}
	large := httptest.NewServer(http.HandlerFunc(s.large))
	front := httptest.NewServer(s.front(large.URL))
	t.Cleanup(func() {
		front.CloseClientConnections()
		large.CloseClientConnections()
		front.Close()
		large.Close()
	})
	s.URL = front.URL
	return s
}

// Add serves a folder as a revision of a model, and gives its commit.
func (s *Server) Add(t testing.TB, model, revision, dir string) (commit string) {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil {
			files[filepath.ToSlash(rel)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	commit = commitOf(model, revision)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.models[model] == nil {
		s.models[model] = map[string]map[string][]byte{}
	}
	s.models[model][revision], s.models[model][commit] = files, files
	return commit
}

// AnswerLarge answers for the second host, with the file's content at hand; false
// leaves an answer to the server.
func (s *Server) AnswerLarge(answer func(http.ResponseWriter, *http.Request, []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Requests gives the requests since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

func (s *Server) note(r *http.Request, large bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{r.URL.Path, r.Header.Get("Range"), r.Header.Get("Authorization"), large})
}

// commitOf is the commit that a branch or tag is, or the commit itself.
func commitOf(model, revision string) string {
	if len(revision) == 40 {
		return revision
	}
	return fmt.Sprintf("%x", sha1.Sum([]byte(model+"@"+revision)))
}

func isLarge(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || strings.Contains(name, ".onnx")
}

func (s *Server) front(large string) http.Handler {
	refuse := func(w http.ResponseWriter, status int, code string) {
		w.Header().Set("X-Error-Code", code)
		w.WriteHeader(status)
	}
	// find gives the files of a revision, or answers for it.
	find := func(w http.ResponseWriter, r *http.Request) (string, map[string][]byte) {
		s.note(r, false)
		id := r.PathValue("org") + "/" + r.PathValue("name")
		s.mu.Lock()
		revisions, ok := s.models[id]
		files, known := revisions[r.PathValue("revision")]
		s.mu.Unlock()
		switch {
		case !ok, s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token:
			refuse(w, http.StatusUnauthorized, "RepoNotFound")
		case s.Gated:
			refuse(w, http.StatusForbidden, "GatedRepo")
		case !known:
			refuse(w, http.StatusNotFound, "RevisionNotFound")
		default:
			return id, files
		}
		return id, nil
	}
	api, resolve := http.NewServeMux(), http.NewServeMux()
	api.HandleFunc("GET /api/models/{org}/{name}/revision/{revision}", func(w http.ResponseWriter, r *http.Request) {
		id, files := find(w, r)
		if files == nil {
			return
		}
		type object = map[string]any
		var siblings []object
		for name, b := range files {
			o := object{"rfilename": name, "size": len(b), "blobId": Blob(b)}
			if isLarge(name) {
				o["lfs"] = object{"sha256": SHA256(b), "size": len(b), "pointerSize": 130}
			}
			if other, ok := s.Names[name]; ok {
				o["rfilename"] = other
			}
			siblings = append(siblings, o)
		}
		commit := commitOf(id, r.PathValue("revision"))
		_ = json.NewEncoder(w).Encode(object{"id": id, "sha": commit, "siblings": siblings})
	})
	resolve.HandleFunc("GET /{org}/{name}/resolve/{revision}/{file...}", func(w http.ResponseWriter, r *http.Request) {
		id, files := find(w, r)
		if files == nil {
			return
		}
		b, ok := files[r.PathValue("file")]
		if !ok {
			refuse(w, http.StatusNotFound, "EntryNotFound")
			return
		}
		w.Header().Set("X-Repo-Commit", commitOf(id, r.PathValue("revision")))
		w.Header().Set("ETag", `"`+Blob(b)+`"`)
		if isLarge(r.PathValue("file")) {
			w.Header().Set("X-Linked-ETag", `"`+SHA256(b)+`"`)
			w.Header().Set("X-Linked-Size", strconv.Itoa(len(b)))
			http.Redirect(w, r, large+r.URL.Path, http.StatusFound)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(b)))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
		} else {
			resolve.ServeHTTP(w, r)
		}
	})
}

func (s *Server) large(w http.ResponseWriter, r *http.Request) {
	s.note(r, true)
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 5)
	s.mu.Lock()
	b, answer := s.models[parts[0]+"/"+parts[1]][parts[3]][parts[4]], s.answer
	s.mu.Unlock()
	if answer != nil && answer(w, r, b) {
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(b)))
}

// SHA256 is the checksum of a large file.
func SHA256(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// Blob is the checksum that git gives a file.
func Blob(b []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...)))
}
