package pack

import "io"

// Verify reads a stream to its end and returns its manifest if the stream is whole: every entry is of
// a kind and at a place that Pack writes, and all parts sum up. limit bounds its bytes before
// compression, zero is the default. It keeps nothing and takes no more than some megabytes.
func Verify(r io.Reader, limit int64) (Manifest, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return read(r, limit, func(entry, io.Reader) error { return nil })
}
