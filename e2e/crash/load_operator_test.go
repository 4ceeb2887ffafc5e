package crash

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/state"
)

// socket is errand's port. It stays open while errand restarts, as a service manager's does, until it is closed.
type socket struct {
	address string
	kept    *os.File
}

// listen returns a listener of the port, which it opens if it is closed. Another process may have used it meanwhile.
func (s *socket) listen(ctx context.Context) (net.Listener, error) {
	for tries := 0; s.kept == nil; tries++ {
		var lc net.ListenConfig
		address := s.address
		if address == "" {
			address = "127.0.0.1:0"
		}
		ln, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			s.address = ln.Addr().String()
			s.kept, err = ln.(*net.TCPListener).File()
			err = errors.Join(err, ln.Close())
		}
		if err != nil && (!errors.Is(err, syscall.EADDRINUSE) || tries == 100) {
			return nil, err
		}
		if err != nil {
			pauseFor(100 * time.Millisecond)
		}
	}
	return net.FileListener(s.kept)
}

func (s *socket) close() error {
	if s.kept == nil {
		return nil
	}
	err := s.kept.Close()
	s.kept = nil
	return err
}

func pauseFor(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// restart ends errand as a service manager does, and starts it again.
func (l *load) restart(ctx context.Context) error {
	if err := l.world.Stop(); err != nil {
		return fmt.Errorf("stop errand: %w", err)
	}
	return l.world.Start(ctx)
}

// rotateSecret replaces the webhook secret as `errand rotate webhook-secret` does, while webhooks with both secrets are on their way.
func (l *load) rotateSecret(ctx context.Context) error {
	file, app, next := filepath.Join(l.dir, "secrets", "webhook"), l.world.GitHub.App(), rand.Text()
	for _, step := range []func() error{
		func() error { return os.WriteFile(file, []byte(next+"\n"+app.WebhookSecret+"\n"), 0o600) },
		func() error { return l.restart(ctx) },
		func() error { return l.chatFurther(ctx) },
		func() error { l.world.GitHub.SetWebhook(app.WebhookURL, next); return nil },
		func() error { return l.chatFurther(ctx) },
		func() error { return l.delivered(ctx) }, // those that are signed with the previous secret
		func() error { return os.WriteFile(file, []byte(next+"\n"), 0o600) },
		func() error { return l.restart(ctx) },
		func() error { return l.chatFurther(ctx) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("replace the webhook secret: %w", err)
		}
	}
	return nil
}

// rotateTetherKey replaces the tether key while agents work.
func (l *load) rotateTetherKey(ctx context.Context) error {
	if err := keyfile.Replace(filepath.Join(l.dir, "data", server.TetherKeyFile)); err != nil {
		return err
	}
	return l.restart(ctx)
}

// post sends a form to errand as the operator.
func (l *load) post(ctx context.Context, path string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+demo.AdminToken)
	return webtest.Client().Do(req)
}

// saveBackup does what `errand backup -o FILE` does. The error is errAway if errand cannot make a backup at present.
func (l *load) saveBackup(ctx context.Context, file string) error {
	resp, err := l.post(ctx, "/backup", nil)
	if err != nil {
		return errors.Join(errAway, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // errand is dead, or makes another backup
		return errors.Join(errAway, errors.New(resp.Status))
	}
	_, err = backup.Save(ctx, file, func(_ context.Context, w io.Writer) error {
		if _, err := io.Copy(w, resp.Body); err != nil {
			return errors.Join(errAway, err)
		}
		return nil
	})
	if errors.Is(err, backup.ErrDamaged) && ctx.Err() == nil { // the answer ended too early, since errand ended
		err = errors.Join(errAway, err)
	}
	return err
}

var errAway = errors.New("errand does not answer")

// backUp makes a backup, when errand can.
func (l *load) backUp(ctx context.Context) error {
	b := saved{filepath.Join(l.dir, fmt.Sprintf("backup-%d.tar.zst", len(l.backups)+1)), l.script.tried.len()}
	err := l.life.until(ctx, "a backup", func() (bool, error) {
		err := l.saveBackup(ctx, b.file)
		if errors.Is(err, errAway) {
			return false, nil
		}
		return err == nil, err
	})
	l.backups = append(l.backups, b)
	return err
}

// lose ends errand at once, with all of its data, and closes its port.
func (l *load) lose() error {
	l.gate.kill()
	_ = l.world.Stop() // the dead incarnation's error does not matter
	return l.socket.close()
}

// restore does what `errand restore --force FILE` does, and starts errand, which waits for `errand resume`.
func (l *load) restore(ctx context.Context, file string) error {
	cfg, err := config.Load(l.world.ConfigFile(), os.LookupEnv)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := server.Restore(ctx, cfg, server.Options{Now: l.script.clock.now}, f, true); err != nil {
		return fmt.Errorf("restore the backup: %w", err)
	}
	return l.world.Start(ctx)
}

// resume does what `errand resume` does.
func (l *load) resume(ctx context.Context) error {
	resp, err := l.post(ctx, "/resume", url.Values{"id": {rand.Text()}})
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("resume: " + resp.Status)
	}
	return nil
}

// writes returns the number of changes at GitHub and of VMs, by all incarnations.
func (l *load) writes() (n int) {
	for op, count := range l.script.seen() {
		if strings.HasPrefix(op, "github: ") || strings.HasPrefix(op, "vm: ") {
			n += count
		}
	}
	return n
}

// vanished returns the names of VMs that errand gave up when it was restored.
func (l *load) vanished(ctx context.Context) (map[string]bool, error) {
	rows, err := l.world.Server.Store().VMs.List(ctx)
	given := map[string]bool{}
	for _, r := range rows {
		if r.EndReason == state.VMEndVanished {
			given[r.Name] = true
		}
	}
	return given, err
}
