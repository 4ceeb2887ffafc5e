package handlers

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
)

// chunkSize is the unit of allocation for request bodies. Most webhooks fit into one chunk.
const chunkSize = 32 << 10

// errNoMemory is the error for a body that was abandoned in favor of smaller ones.
var errNoMemory = errors.New("too many large webhooks at once; errand will ask GitHub for this one later")

// bodies manages the memory for request bodies: at most max chunks, plus one for each body. The server's limit on
// connections limits the number of bodies. Chunks are reused for later bodies, so that a flood of requests creates no
// work for the garbage collector.
//
// Memory is allocated for bytes that have arrived, not for an announced length. Every body gets its first chunk, which
// is enough for most. If no other chunk is left, the body with the most chunks is abandoned.
type bodies struct {
	max int

	mu        sync.Mutex
	allocated int
	free      [][]byte
	unread    map[*body]struct{} // bodies that are being read
}

func newBodies(bytes int) *bodies {
	return &bodies{max: bytes / chunkSize, unread: map[*body]struct{}{}}
}

// body is one request body. Its fields except interrupt are protected by the lock of bodies.
type body struct {
	pool      *bodies
	interrupt func() // makes a blocked read return
	full      [][]byte
	last      []byte // the bytes in a partly filled chunk
	abandoned bool
}

// begin returns an empty body; call readAll, then release. If the body is abandoned during readAll, interrupt is called
// and must make a blocked read fail.
func (b *bodies) begin(interrupt func()) *body {
	return &body{pool: b, interrupt: interrupt}
}

// readAll reads r to its end. It returns errNoMemory if the body was abandoned.
func (d *body) readAll(r io.Reader) error {
	b := d.pool
	b.mu.Lock()
	b.unread[d] = struct{}{}
	b.mu.Unlock()
	err := d.readChunks(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unread, d)
	if d.abandoned { // possibly after its last byte
		return errNoMemory
	}
	return err
}

// readChunks reads r into chunks.
func (d *body) readChunks(r io.Reader) error {
	b := d.pool
	for {
		chunk, err := b.takeChunk(d)
		if err != nil {
			return err
		}
		n := 0
		for err == nil && n < len(chunk) {
			var more int
			more, err = r.Read(chunk[n:])
			n += more
		}
		if err := d.add(chunk, n); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// takeChunk returns a chunk for a body. If no chunk is available it abandons the body with the most chunks.
func (b *bodies) takeChunk(d *body) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := len(d.full) == 0 && !d.abandoned
	if len(b.free) == 0 && b.allocated >= b.max && !first && !d.abandoned {
		largest := d
		for other := range b.unread {
			if len(other.full) > len(largest.full) {
				largest = other
			}
		}
		b.abandon(largest)
	}
	switch {
	case d.abandoned:
		return nil, errNoMemory
	case len(b.free) > 0:
		chunk := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		return chunk, nil
	case b.allocated < b.max || first:
		b.allocated++
		return make([]byte, chunkSize), nil
	}
	return nil, errNoMemory
}

// abandon abandons a body and frees its chunks, except the one being read into, which its reader frees.
func (b *bodies) abandon(d *body) {
	d.abandoned = true
	b.free, d.full = append(b.free, d.full...), nil
	d.interrupt()
}

// add appends a chunk that contains n bytes.
func (d *body) add(chunk []byte, n int) error {
	b := d.pool
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case d.abandoned:
		b.free = append(b.free, chunk)
		return errNoMemory
	case n == len(chunk):
		d.full = append(d.full, chunk)
	default:
		d.last = chunk[:n]
	}
	return nil
}

// bytes returns the bytes that readAll read, valid until release. Most bodies are not copied.
func (d *body) bytes() []byte {
	if len(d.full) == 0 {
		return d.last
	}
	return bytes.Join(append(slices.Clone(d.full), d.last), nil)
}

// release returns the body's chunks for reuse.
func (d *body) release() {
	b := d.pool
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, d.full...)
	if d.last != nil {
		b.free = append(b.free, d.last[:chunkSize])
	}
	d.full, d.last = nil, nil
}
