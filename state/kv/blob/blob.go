package blob

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

// PartPrefix begins the keys of the parts of large values. The whole key is "part/KEY/N", where N counts from 0.
const PartPrefix = "part/"

// The first byte of a stored value indicates its format. Plain JSON has no mark: it begins with '{', '[' or another
// printable character.
const (
	markZstd  = 0x01 // a zstd frame
	markParts = 0x02 // the decimal number of parts
	markFast  = 0x03 // the CRC-32C of the plain bytes, big endian, then an S2 block
)

const (
	minCompressed = 1 << 10   // smaller values are stored uncompressed
	maxFast       = 64 << 10  // larger values are always compressed with zstd
	partSize      = 480 << 10 // below kv.MaxValueBytes
	maxExpanded   = 64 << 20  // of a compressed value
	windowSize    = 1 << 20   // of zstd: enough for text, and takes little memory
)

// A Codec encodes values as JSON, compresses them, and decodes them. It may be used concurrently.
type Codec struct {
	enc     *zstd.Encoder
	dec     *zstd.Decoder
	buffers sync.Pool // of *[]byte, each large enough for maxFast compressed bytes
	cache   cache
}

// New returns a Codec that copies cached values with c.
func New(c *Cloner) (*Codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(windowSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxExpanded))
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	return &Codec{enc: enc, dec: dec, cache: cache{cloner: c}}, nil
}

// Compress returns data in the form in which it is stored: unmodified if it is small, else compressed with zstd.
func (c *Codec) Compress(data []byte) []byte {
	marked := len(data) > 0 && (data[0] == markZstd || data[0] == markParts || data[0] == markFast)
	if len(data) < minCompressed && !marked {
		return data
	}
	return c.enc.EncodeAll(data, []byte{markZstd})
}

// CompressFast is Compress for data that is deleted soon: it takes a quarter of the CPU time, and compresses less.
func (c *Codec) CompressFast(data []byte) []byte {
	if len(data) < minCompressed || len(data) > maxFast {
		return c.Compress(data)
	}
	buf, _ := c.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new(make([]byte, s2.MaxEncodedLen(maxFast)))
	}
	defer c.buffers.Put(buf)
	block := s2.Encode(*buf, data)
	packed := make([]byte, fastHeader, fastHeader+len(block))
	packed[0] = markFast
	binary.BigEndian.PutUint32(packed[1:], crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return append(packed, block...)
}

// fastHeader is the length of the mark and the checksum that precede an S2 block. A zstd frame has a checksum of its
// own.
const fastHeader = 1 + crc32.Size

// Decompress returns the data that Compress or CompressFast was given. If the data is damaged it returns an error.
func (c *Codec) Decompress(data []byte) ([]byte, error) {
	switch {
	case len(data) > 0 && data[0] == markZstd:
		return c.dec.DecodeAll(data[1:], nil)
	case len(data) > 0 && data[0] == markFast:
		return expandFast(data)
	}
	return data, nil
}

func expandFast(data []byte) ([]byte, error) {
	if len(data) < fastHeader {
		return nil, errors.New("S2 block is cut short")
	}
	n, err := s2.DecodedLen(data[fastHeader:])
	if err != nil {
		return nil, err
	}
	if n > maxFast {
		return nil, fmt.Errorf("S2 block would expand to %d bytes", n)
	}
	plain, err := s2.Decode(nil, data[fastHeader:])
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(plain, crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[1:]) {
		return nil, errors.New("checksum of an S2 block is wrong")
	}
	return plain, nil
}

// PutJSON stores v under key as JSON, compressed and split into parts as needed.
func (c *Codec) PutJSON(tx kv.Tx, key string, v any) error {
	packed, err := c.EncodeJSON(key, v)
	if err != nil {
		return err
	}
	return Put(tx, key, packed)
}

// EncodeJSON returns the bytes that PutJSON stores under key, before they are split. The key is used in errors only.
func (c *Codec) EncodeJSON(key string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return c.Compress(data), nil
}

// GetJSON reads the value that PutJSON stored under key into v. If there is none it returns kv.ErrNotFound.
func (c *Codec) GetJSON(r kv.Reader, key string, v any) error {
	data, err := Get(r, key)
	if err != nil {
		return err
	}
	return c.Decode(key, data, v)
}

// Decode decodes the bytes stored under key into v, which must point to a zero value.
func (c *Codec) Decode(key string, packed []byte, v any) error {
	if c.cache.get(key, packed, v) {
		return nil
	}
	if err := c.decode(key, packed, v); err != nil {
		return err
	}
	c.cache.put(key, packed, v)
	return nil
}

// DecodeUncached is Decode for values that are rarely read again: it does not add them to the cache.
func (c *Codec) DecodeUncached(key string, packed []byte, v any) error {
	if c.cache.get(key, packed, v) {
		return nil
	}
	return c.decode(key, packed, v)
}

func (c *Codec) decode(key string, packed []byte, v any) error {
	data, err := c.Decompress(packed)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	return nil
}

// PartKey returns the key of part n of the value under key, counting from 0.
func PartKey(key string, n int) string { return fmt.Sprintf("%s%s/%d", PartPrefix, key, n) }

// PartCount returns the number of parts of the value whose stored bytes are head, or 0 if head is the whole value.
func PartCount(head []byte) int {
	if len(head) == 0 || head[0] != markParts {
		return 0
	}
	n, err := strconv.Atoi(string(head[1:]))
	if err != nil {
		return 0
	}
	return n
}

// Put stores data under key, in parts if it is too large for one value, and removes the parts of the value that was
// there before.
func Put(tx kv.Tx, key string, data []byte) error {
	parts := Split(data)
	if err := dropParts(tx, key, len(parts)); err != nil {
		return err
	}
	for i, part := range parts {
		if err := tx.Put(PartKey(key, i), part); err != nil {
			return err
		}
	}
	return tx.Put(key, Head(data, parts))
}

// Split cuts data into parts. It returns none if data fits into one value.
func Split(data []byte) [][]byte {
	if len(data) <= kv.MaxValueBytes {
		return nil
	}
	var parts [][]byte
	for len(data) > 0 {
		n := min(partSize, len(data))
		parts, data = append(parts, data[:n]), data[n:]
	}
	return parts
}

// Head returns the bytes that are stored under the key of a value: data itself, or the number of its parts.
func Head(data []byte, parts [][]byte) []byte {
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
	for n := PartCount(head); n > from; n-- {
		if err := tx.Delete(PartKey(key, n-1)); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the data that Put stored under key, or kv.ErrNotFound.
func Get(r kv.Reader, key string) ([]byte, error) {
	head, err := r.Get(key)
	if err != nil {
		return nil, err
	}
	return Join(r, key, head)
}

// Join returns the data of the value under key whose stored bytes are head: head itself, or its parts.
func Join(r kv.Reader, key string, head []byte) ([]byte, error) {
	n := PartCount(head)
	if n == 0 {
		return head, nil
	}
	var whole bytes.Buffer
	for i := range n {
		part, err := r.Get(PartKey(key, i))
		if err != nil {
			return nil, fmt.Errorf("read %s in %d parts: %w", key, n, err)
		}
		whole.Write(part)
	}
	return whole.Bytes(), nil
}

// Delete removes the value under key and its parts.
func Delete(tx kv.Tx, key string) error {
	if err := dropParts(tx, key, 0); err != nil {
		return err
	}
	return tx.Delete(key)
}
