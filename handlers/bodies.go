package handlers

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
)

// chunkSize is the unit in which memory for bodies is taken. Most webhooks fit into one.
const chunkSize = 32 << 10

// errNoMemory says that a body was given up for the sake of smaller ones.
var errNoMemory = errors.New("too many large webhooks arrive at once; errand asks GitHub for it later")

// bodies is the memory for bodies that are being read: chunks, of which there are max, and one more for each body, whose
// number the server's bound on connections limits. They are kept for the next body, so that a flood leaves the garbage
// collector nothing to do.
//
// Memory is taken for what has arrived, not for what was announced. Every body has its first chunk, which is enough for most.
// When there is none left for the next one, the body that holds the most is given up.
type bodies struct {
	max int

	mu     sync.Mutex
	made   int
	free   [][]byte
	unread map[*body]struct{} // those that are being read
}

func newBodies(bytes int) *bodies {
	return &bodies{max: bytes / chunkSize, unread: map[*body]struct{}{}}
}

// body is one body. All but interrupt is under the lock of bodies.
type body struct {
	of        *bodies
	interrupt func() // ends a read that blocks
	full      [][]byte
	last      []byte // what is read of a chunk that is not full
	givenUp   bool
}

// begin returns an empty body, for readAll and then release. interrupt is called, while readAll reads, if its
// memory is needed for others: it has to make a read fail that blocks.
func (b *bodies) begin(interrupt func()) *body {
	return &body{of: b, interrupt: interrupt}
}

// readAll reads everything into memory. It returns errNoMemory if that was needed for others.
func (d *body) readAll(r io.Reader) error {
	b := d.of
	b.mu.Lock()
	b.unread[d] = struct{}{}
	b.mu.Unlock()
	err := d.readChunks(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unread, d)
	if d.givenUp { // perhaps after its last byte
		return errNoMemory
	}
	return err
}

// readChunks reads everything into chunks.
func (d *body) readChunks(r io.Reader) error {
	b := d.of
	for {
		chunk, err := b.take(d)
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

// take returns a chunk for a body, at the expense of the body that holds the most where there is no other.
func (b *bodies) take(d *body) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := len(d.full) == 0 && !d.givenUp
	if len(b.free) == 0 && b.made >= b.max && !first && !d.givenUp {
		largest := d
		for other := range b.unread {
			if len(other.full) > len(largest.full) {
				largest = other
			}
		}
		b.giveUp(largest)
	}
	switch {
	case d.givenUp:
		return nil, errNoMemory
	case len(b.free) > 0:
		chunk := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		return chunk, nil
	case b.made < b.max || first:
		b.made++
		return make([]byte, chunkSize), nil
	}
	return nil, errNoMemory
}

// giveUp frees the chunks of a body but for the one that is being read into, which its reader frees.
func (b *bodies) giveUp(d *body) {
	d.givenUp = true
	b.free, d.full = append(b.free, d.full...), nil
	d.interrupt()
}

// add adds the n bytes that were read into a chunk.
func (d *body) add(chunk []byte, n int) error {
	b := d.of
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case d.givenUp:
		b.free = append(b.free, chunk)
		return errNoMemory
	case n == len(chunk):
		d.full = append(d.full, chunk)
	default:
		d.last = chunk[:n]
	}
	return nil
}

// bytes returns what readAll has read. It is valid until release: most bodies are not copied.
func (d *body) bytes() []byte {
	if len(d.full) == 0 {
		return d.last
	}
	return bytes.Join(append(slices.Clone(d.full), d.last), nil)
}

// release gives the memory back.
func (d *body) release() {
	b := d.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, d.full...)
	if d.last != nil {
		b.free = append(b.free, d.last[:chunkSize])
	}
	d.full, d.last = nil, nil
}
