package shard

import (
	"sync"

	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// codec is zstd at its fastest with one encoder for the whole process. The library's own
// gives its encoders, of 16 MiB each, to the collector whenever it runs. A window
// of two pages finds what a page repeats, in 1 MiB.
type codec struct {
	parquetzstd.Codec // its name, and what reads
}

var pageEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(encoders()), zstd.WithWindowSize(2*pageBytes),
		zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
})

// Encode may be called by several goroutines.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	e, err := pageEncoder()
	if err != nil {
		return nil, err
	}
	return e.EncodeAll(src, dst[:0]), nil
}
