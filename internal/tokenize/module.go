//go:build tools

package tokenize

// The Rust source of this module is half of libtokenizers.a (scripts/build-tokenizers);
// its Go package is not used. The import keeps its version in go.mod.
import _ "github.com/daulet/tokenizers"
