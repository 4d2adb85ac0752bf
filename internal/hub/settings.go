package hub

import (
	"cmp"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"localembed/internal/fault"
)

// defaultEndpoint is the hub that the names are of.
const defaultEndpoint = "https://huggingface.co"

// settings are what the hub's own clients read from the environment.
type settings struct {
	endpoint string // HF_ENDPOINT, without a slash at its end
	cache    string // HF_HUB_CACHE or its old name, else hub in HF_HOME, else in the user's cache folder
	token    string // HF_TOKEN, else the file that logging in leaves; "" for none
	offline  bool   // HF_HUB_OFFLINE, else TRANSFORMERS_OFFLINE
}

func readSettings() (settings, error) {
	s := settings{endpoint: strings.TrimRight(cmp.Or(os.Getenv("HF_ENDPOINT"), defaultEndpoint), "/")}
	if u, err := url.Parse(s.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return s, fault.New(fault.Usage, "HF_ENDPOINT is %q, which is not the address of a hub", s.endpoint).
			Hinting("give an address that starts with https://, or leave it out")
	}
	home := os.Getenv("HF_HOME")
	if home == "" {
		caches := os.Getenv("XDG_CACHE_HOME")
		if caches == "" {
			user, err := os.UserHomeDir()
			if err != nil && os.Getenv("HF_HUB_CACHE") == "" {
				return s, fault.New(fault.Usage, "no home folder is known to keep models in").Because(err).Hinting("set HF_HOME to a folder")
			}
			caches = filepath.Join(user, ".cache")
		}
		home = filepath.Join(caches, "huggingface")
	}
	s.cache = cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"), filepath.Join(home, "hub"))
	switch strings.ToLower(cmp.Or(os.Getenv("HF_HUB_OFFLINE"), os.Getenv("TRANSFORMERS_OFFLINE"))) {
	case "1", "true", "yes", "on":
		s.offline = true
	}
	if s.token = strings.TrimSpace(os.Getenv("HF_TOKEN")); s.token == "" {
		path := cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token"))
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, fault.Of(err)
		}
		s.token = strings.TrimSpace(string(b))
	}
	if strings.ContainsAny(s.token, "\r\n") {
		return s, fault.New(fault.Usage, "the hub's token has several lines").Hinting("set HF_TOKEN to the token alone")
	}
	return s, nil
}

// copyHint says how a model gets onto a machine without the hub.
func (s settings) copyHint(n Name) string {
	folder := "models--" + strings.ReplaceAll(n.Model, "/", "--")
	return "on a machine that reaches the hub run `localembed model " + n.String() + "`, then copy " + folder +
		" from its cache (~/.cache/huggingface/hub) into " + s.cache + " here; or copy the model's files into any folder and give that as --model"
}
