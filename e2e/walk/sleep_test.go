package walk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/pack"
)

// packed is the archive of a machine's work.
type packed struct {
	Branch, Root string
	Work         []changeset.Commit
	Blobs        map[string][]byte
}

// Pack writes the archive of a machine's work; the machine keeps its work.
func (m *machines) Pack(ctx context.Context, vm string, spec pack.Spec, to io.Writer) (man pack.Manifest, err error) {
	err = m.on(ctx, "pack", vm, func(o *walkVM) error {
		for _, r := range o.runs {
			if r.exit == nil {
				m.w.fatalf("sleep: VM %s is packed while run %s is active", vm, r.spec.ID)
			}
		}
		man = pack.Manifest{Form: pack.Form, Base: spec.Base, Head: o.head(), Dir: spec.Dir}
		return json.NewEncoder(to).Encode(packed{o.branch, o.root, o.work, o.blobs})
	})
	return man, err
}

// Unpack restores it on another machine; it may be repeated until a run begins there.
func (m *machines) Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, from io.Reader) (man pack.Manifest, err error) {
	err = m.on(ctx, "unpack", vm, func(o *walkVM) error {
		for _, r := range o.runs {
			if r.exit == nil {
				m.w.fatalf("sleep: an archive is unpacked on VM %s while run %s is active", vm, r.spec.ID)
			}
		}
		var p packed
		if err := json.NewDecoder(from).Decode(&p); err != nil {
			return fmt.Errorf("%w: %w", pack.ErrMalformed, err)
		}
		m.w.works.checkWorkKept(o, "VM "+vm+" takes over other work")
		o.branch, o.root, o.work, o.blobs = p.Branch, p.Root, p.Work, maps.Clone(p.Blobs)
		if o.blobs == nil {
			o.blobs = map[string][]byte{}
		}
		m.w.hit("woken")
		return nil
	})
	if err != nil {
		m.w.works.unpacked()
	}
	return man, err
}

// SaveSleep stores the archive that fill writes.
func (m files) SaveSleep(task string, fill func(io.Writer) (pack.Manifest, error)) (archive.Sleep, error) {
	var b bytes.Buffer
	man, err := fill(&b)
	if err != nil {
		return archive.Sleep{}, err
	}
	sum := sha256.Sum256(append([]byte(man.Head), b.Bytes()...))
	s := archive.Sleep{Ref: task + "-" + hex.EncodeToString(sum[:8]), Bytes: int64(b.Len()), SHA256: hex.EncodeToString(sum[:]), Manifest: man}
	m.w.asleep[s.Ref] = b.Bytes()
	m.w.hit("asleep")
	return s, nil
}

// OpenSleep opens a stored archive.
func (m files) OpenSleep(ref, _ string) (*os.File, error) {
	m.w.works.opened = ref
	data, ok := m.w.asleep[ref]
	if !ok {
		return nil, archive.ErrNoArchive
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() { // ends when everything is read, or the reader is closed
		_, _ = w.Write(data)
		_ = w.Close()
	}()
	return r, nil
}

// DeleteSleep deletes a stored archive.
func (m files) DeleteSleep(ref string) error {
	m.w.works.checkArchiveDeletion(ref)
	delete(m.w.asleep, ref)
	return nil
}
