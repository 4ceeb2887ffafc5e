package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// The folder of attachments, and the suffix of their names.
const (
	attachments   = "attachments"
	attachmentExt = ".bin"
)

// Attachment is a file of a task on disk.
type Attachment struct {
	// Ref is the task's name, a dash, and the SHA-256 of the content.
	Ref   string
	Saved time.Time
}

// SaveAttachment stores a file of a task under the SHA-256 of its content, which it returns in hexadecimal digits. Saving
// the same content again has no effect.
func (d *Dir) SaveAttachment(task string, content []byte) (digest string, err error) {
	sum := sha256.Sum256(content)
	digest = hex.EncodeToString(sum[:])
	path, err := d.file(attachments, task+"-"+digest, attachmentExt)
	if err != nil {
		return "", err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return digest, nil
	}
	if err := durable.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("save an attachment: %w", err)
	}
	return digest, nil
}

// LoadAttachment reads a file that SaveAttachment stored. It returns an error if the file is missing, larger than limit bytes,
// or has another content than was stored.
func (d *Dir) LoadAttachment(task, digest string, limit int64) ([]byte, error) {
	path, err := d.file(attachments, task+"-"+digest, attachmentExt)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open attachment: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read attachment: %w", err)
	}
	if sum := sha256.Sum256(content); int64(len(content)) > limit || hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("read attachment %s: it is damaged", digest)
	}
	return content, nil
}

// Attachments lists all stored attachments, of all tasks, without opening them.
func (d *Dir) Attachments() ([]Attachment, error) {
	entries, err := os.ReadDir(filepath.Join(d.path, attachments))
	if err != nil {
		return nil, fmt.Errorf("list attachments: %w", err)
	}
	var list []Attachment
	for _, e := range entries {
		ref, ok := strings.CutSuffix(e.Name(), attachmentExt)
		info, err := e.Info()
		if !ok || err != nil || !name.MatchString(ref) {
			continue // it is being written, or was just deleted
		}
		list = append(list, Attachment{Ref: ref, Saved: info.ModTime()})
	}
	return list, nil
}

// DeleteAttachment removes a stored attachment. A missing one is not an error.
func (d *Dir) DeleteAttachment(ref string) error {
	path, err := d.file(attachments, ref, attachmentExt)
	if err != nil {
		return err
	}
	if err := d.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete attachment: %w", err)
	}
	return nil
}
