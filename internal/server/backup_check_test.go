package server

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/doctor"
)

// TestFailedBackupIsReported: the doctor shows why the last scheduled backup failed, although an earlier one is recent.
func TestFailedBackupIsReported(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	info := backup.Info{Deployment: "test", App: 7, At: time.Now().Add(-2 * time.Hour)}
	if err := os.WriteFile(folder+"/"+info.FileName(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := &backup.Schedule{
		Folder: folder, Data: t.TempDir(), Every: time.Hour, Keep: 1, Now: time.Now,
		Info: func() backup.Info { info.At = time.Now(); return info },
		Make: func(context.Context, io.Writer) error { return backup.ErrNoSpace },
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for s.Failure() == nil {
		if err := clock.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	list := backupCheck(s, true)(t.Context())
	if len(list) != 1 || list[0].Status != doctor.Warning || !strings.Contains(list[0].Found, backup.ErrNoSpace.Error()) {
		t.Errorf("got %+v", list)
	}
}
