package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAttachments: files are kept per task under the digest of their content, and read back only as they were written.
func TestAttachments(t *testing.T) {
	t.Parallel()
	dir, path := open(t, nil)
	digest, err := dir.SaveAttachment("7-1", []byte("an image"))
	if err != nil || len(digest) != 64 {
		t.Fatalf("digest %q, error %v", digest, err)
	}
	again, err := dir.SaveAttachment("7-1", []byte("an image"))
	if err != nil || again != digest {
		t.Errorf("saved again: digest %q, error %v", again, err)
	}
	if _, err := dir.SaveAttachment("7-2", []byte("an image")); err != nil {
		t.Error(err)
	}
	if list, err := dir.Attachments(); err != nil || len(list) != 2 {
		t.Errorf("list %v, error %v", list, err)
	}
	if got, err := dir.LoadAttachment("7-1", digest, 8); err != nil || !bytes.Equal(got, []byte("an image")) {
		t.Errorf("got %q, error %v", got, err)
	}
	file := filepath.Join(path, "attachments", "7-1-"+digest+".bin")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, error %v", info, err)
	}
	if _, err := dir.LoadAttachment("7-1", digest, 7); err == nil {
		t.Error("a larger file than the limit was read")
	}
	if _, err := dir.LoadAttachment("7-3", digest, 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another task's file: error %v", err)
	}
	if err := os.WriteFile(file, []byte("another."), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.LoadAttachment("7-1", digest, 8); err == nil {
		t.Error("a damaged file was read")
	}
	for _, bad := range []string{"../7", "a/b"} {
		if _, err := dir.SaveAttachment(bad, nil); err == nil {
			t.Errorf("the name %q was accepted", bad)
		}
	}
	for range 2 {
		if err := dir.DeleteAttachment("7-1-" + digest); err != nil {
			t.Error(err)
		}
	}
	if n, err := dir.Prune(time.Now().Add(time.Hour), time.Now()); n != 0 || err != nil {
		t.Errorf("pruned %d, error %v: a task may need it", n, err)
	}
	if list, err := dir.Attachments(); err != nil || len(list) != 1 || list[0].Ref != "7-2-"+digest {
		t.Errorf("list %v, error %v", list, err)
	}
}
