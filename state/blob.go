package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/state/kv"
)

// The first byte of a stored value says what follows. JSON needs no mark: it begins with '{', '[' …
const (
	markZstd  = 0x01 // a zstd frame
	markParts = 0x02 // the decimal number of parts under prePart
	markQuick = 0x03 // the CRC-32C of the plain bytes, big endian, then an S2 block
)

const (
	compressFrom = 1 << 10   // smaller values are stored as they are
	quickMost    = 64 << 10  // larger values are worth the better compression
	partBytes    = 480 << 10 // of one part, under kv.MaxValueBytes
	maxUnpacked  = 64 << 20  // what a stored value may expand to
	windowBytes  = 1 << 20   // of the compressor: enough for text, little memory
)

// packer compresses and expands values. It may be used concurrently.
type packer struct {
	enc   *zstd.Encoder
	dec   *zstd.Decoder
	rooms sync.Pool // of *[]byte, each large enough for what packQuick makes of quickMost bytes
	known known
}

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	return &packer{enc: enc, dec: dec}, nil
}

// pack compresses data if that is worth it. The result begins with a mark unless data begins with a
// byte that is none.
func (p *packer) pack(data []byte) []byte {
	marked := len(data) > 0 && (data[0] == markZstd || data[0] == markParts || data[0] == markQuick)
	if len(data) < compressFrom && !marked {
		return data
	}
	return p.enc.EncodeAll(data, []byte{markZstd})
}

// packQuick is pack for data that is deleted soon. It takes a quarter of the CPU time, and compresses less.
func (p *packer) packQuick(data []byte) []byte {
	if len(data) < compressFrom || len(data) > quickMost {
		return p.pack(data)
	}
	room, _ := p.rooms.Get().(*[]byte)
	if room == nil {
		room = new(make([]byte, s2.MaxEncodedLen(quickMost)))
	}
	defer p.rooms.Put(room)
	block := s2.Encode(*room, data)
	packed := make([]byte, quickHead, quickHead+len(block))
	packed[0] = markQuick
	binary.BigEndian.PutUint32(packed[1:], crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return append(packed, block...)
}

// quickHead is the length of the mark and the checksum. A zstd frame has a checksum of its own.
const quickHead = 1 + crc32.Size

// unpack returns the data that pack or packQuick was given. Data that was damaged meanwhile is an error.
func (p *packer) unpack(data []byte) ([]byte, error) {
	switch {
	case len(data) > 0 && data[0] == markZstd:
		return p.dec.DecodeAll(data[1:], nil)
	case len(data) > 0 && data[0] == markQuick:
		return unpackQuick(data)
	}
	return data, nil
}

func unpackQuick(data []byte) ([]byte, error) {
	if len(data) < quickHead {
		return nil, errors.New("S2 block is cut short")
	}
	n, err := s2.DecodedLen(data[quickHead:])
	if err != nil {
		return nil, err
	}
	if n > quickMost {
		return nil, fmt.Errorf("S2 block would expand to %d bytes", n)
	}
	plain, err := s2.Decode(nil, data[quickHead:])
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(plain, crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[1:]) {
		return nil, errors.New("checksum of an S2 block is wrong")
	}
	return plain, nil
}

// putJSON stores v under key, compressed and in parts as needed.
func (p *packer) putJSON(tx kv.Tx, key string, v any) error {
	packed, err := p.packJSON(key, v)
	if err != nil {
		return err
	}
	return putBlob(tx, key, packed)
}

// packJSON returns what putJSON stores.
func (p *packer) packJSON(key string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return p.pack(data), nil
}

// getJSON reads what putJSON stored into v. If there is nothing the error is kv.ErrNotFound.
func (p *packer) getJSON(r kv.Reader, key string, v any) error {
	data, err := getBlob(r, key)
	if err != nil {
		return err
	}
	return p.decode(key, data, v)
}

// decode reads packed data into v, which is its zero value.
func (p *packer) decode(key string, packed []byte, v any) error {
	if p.known.get(key, packed, v) {
		return nil
	}
	if err := p.decodeOnce(key, packed, v); err != nil {
		return err
	}
	p.known.put(key, packed, v)
	return nil
}

// decodeOnce is decode for what is hardly read again soon: it keeps nothing.
func (p *packer) decodeOnce(key string, packed []byte, v any) error {
	data, err := p.unpack(packed)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	return nil
}

func partKey(key string, n int) string { return fmt.Sprintf("%s%s/%d", prePart, key, n) }

// partsOf returns how many parts the stored value head stands for, 0 if it is the value itself.
func partsOf(head []byte) int {
	if len(head) == 0 || head[0] != markParts {
		return 0
	}
	n, err := strconv.Atoi(string(head[1:]))
	if err != nil {
		return 0
	}
	return n
}

// putBlob stores packed data under key, in parts if it is too large for one value, and removes the
// parts of what was there before.
func putBlob(tx kv.Tx, key string, data []byte) error {
	parts := split(data)
	if err := dropParts(tx, key, len(parts)); err != nil {
		return err
	}
	for i, part := range parts {
		if err := tx.Put(partKey(key, i), part); err != nil {
			return err
		}
	}
	return tx.Put(key, headOf(data, parts))
}

// split cuts packed data into parts; none if it fits into one value.
func split(data []byte) [][]byte {
	if len(data) <= kv.MaxValueBytes {
		return nil
	}
	var parts [][]byte
	for len(data) > 0 {
		n := min(partBytes, len(data))
		parts, data = append(parts, data[:n]), data[n:]
	}
	return parts
}

func headOf(data []byte, parts [][]byte) []byte {
	if len(parts) == 0 {
		return data
	}
	return strconv.AppendInt([]byte{markParts}, int64(len(parts)), 10)
}

// dropParts removes the parts of the value under key from the given number on.
func dropParts(tx kv.Tx, key string, from int) error {
	head, err := tx.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := partsOf(head); n > from; n-- {
		if err := tx.Delete(partKey(key, n-1)); err != nil {
			return err
		}
	}
	return nil
}

// getBlob returns the packed data under key, or kv.ErrNotFound.
func getBlob(r kv.Reader, key string) ([]byte, error) {
	head, err := r.Get(key)
	if err != nil {
		return nil, err
	}
	return join(r, key, head)
}

// join returns the packed data that the stored value head under key stands for.
func join(r kv.Reader, key string, head []byte) ([]byte, error) {
	n := partsOf(head)
	if n == 0 {
		return head, nil
	}
	var whole bytes.Buffer
	for i := range n {
		part, err := r.Get(partKey(key, i))
		if err != nil {
			return nil, fmt.Errorf("read %s in %d parts: %w", key, n, err)
		}
		whole.Write(part)
	}
	return whole.Bytes(), nil
}

// deleteBlob removes the value under key and its parts.
func deleteBlob(tx kv.Tx, key string) error {
	if err := dropParts(tx, key, 0); err != nil {
		return err
	}
	return tx.Delete(key)
}
