package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/backup"
)

// TestScheduledBackupIsMade: a server with a folder for backups makes one that can be read, and the doctor and a metric show its age.
func TestScheduledBackupIsMade(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := filepath.Join(p.dir, "backups")
	check(t, os.Mkdir(folder, 0o700))
	stop := p.run(p.config("127.0.0.1:0", "backup: {folder: "+folder+"}"))
	var files []string
	until(t, "a backup", func() bool {
		files, _ = filepath.Glob(filepath.Join(folder, "errand-test-*.tar.zst"))
		return len(files) == 1
	})
	f, err := os.Open(files[0])
	check(t, err)
	defer f.Close()
	if got, err := backup.Read(t.Context(), f, nil); err != nil || got.Info.Deployment != "test" || got.Files == 0 {
		t.Errorf("got backup %+v, %v", got, err)
	}
	until(t, "the metric", func() bool {
		_, body := p.get("/metrics")
		return strings.Contains(body, "errand_backup_newest_timestamp_seconds 1")
	})
	if status, body := p.get("/doctor.json"); status != http.StatusOK || !strings.Contains(body, "The newest backup in ") {
		t.Errorf("the doctor says %d %s", status, body)
	}
	check(t, os.Chmod(folder, 0o755))
	if _, body := p.get("/doctor.json"); !strings.Contains(body, "Backups cannot be made: ") {
		t.Errorf("the doctor says %s", body)
	}
	check(t, stop())
}
