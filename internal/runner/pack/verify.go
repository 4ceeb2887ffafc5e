package pack

import "io"

// Verify reads a stream to its end and returns its manifest if the stream is valid: every entry is of a kind and at a
// place that Pack writes, and all sums match. limit bounds its bytes before compression; zero means the default. Verify
// stores nothing and uses only some megabytes of memory.
func Verify(r io.Reader, limit int64) (Manifest, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return read(r, limit, func(entry, io.Reader) error { return nil })
}
