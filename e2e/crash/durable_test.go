package crash

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/heavytest"
)

const (
	hookClients = 16 // concurrently
	hooksEach   = 6  // webhooks from each; the next client delivers each of them again
	traced      = 4 * time.Minute
)

// TestHeavyDurable observes the real `errand serve` with strace: every 200 to GitHub must come after the delivery is in
// the store and synced. As a control, the same check must fail for a build that does not sync.
func TestHeavyDurable(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	if out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-y", "-e", "trace=write", "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here (apt-get install strace; it needs ptrace): %v %.200s", err, out)
	}
	for name, test := range map[string]struct {
		flags  []string
		synced bool
	}{
		"unchanged":       {nil, true},
		"control: NoSync": {[]string{"-tags", "errand_nosync"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			if err := errors.Join(buildtest.Program(t.Context(), bin, "errand", test.flags...), os.Symlink(filepath.Join(common.Bin, "errand-runner"), filepath.Join(bin, "errand-runner"))); err != nil {
				t.Fatal(err)
			}
			answers, wrong, err := underStrace(t, bin)
			if err != nil {
				t.Fatal(err)
			}
			if want := 2 * hookClients * hooksEach; answers != want {
				t.Errorf("got %d answers in the trace, want %d", answers, want)
			}
			t.Logf("not durable: %.300q", wrong)
			t.Logf("PROOF: crash: webhooks answered under strace (%s): %d, of them %d before they were durable", name, answers, len(wrong))
			if test.synced && len(wrong) > 0 {
				t.Error("webhooks were answered before they were durable")
			}
			if !test.synced && len(wrong) != answers {
				t.Errorf("a build without syncs was not detected: %d of %d answers look durable", answers-len(wrong), answers)
			}
		})
	}
}

// underStrace runs errand under strace, sends it webhooks and reads the trace.
func underStrace(t *testing.T, bin string) (answers int, wrong []string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*traced)
	defer cancel()
	dir, err := os.MkdirTemp("", "errand-life-")
	if err != nil {
		return 0, nil, err
	}
	l, err := begin(ctx, dir, newScript())
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		l.gate.open.Store(true)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, l.report())
		}
		err = errors.Join(err, l.world.Start(context.WithoutCancel(ctx)), l.close(), os.RemoveAll(dir))
	}()
	if err := l.world.Stop(); err != nil {
		return 0, nil, err
	}
	file := filepath.Join(dir, "trace")
	end, err := l.strace(ctx, bin, file)
	if err != nil {
		return 0, nil, err
	}
	if err := errors.Join(l.sendHooks(ctx), end()); err != nil {
		return 0, nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	tr, err := readTrace(f)
	if err != nil {
		return 0, nil, err
	}
	answers, wrong = tr.prematureAnswers(filepath.Join(dir, "data", "errand.db"))
	return answers, wrong, nil
}

// strace starts the real errand in place of the world's and writes its reads, writes and syncs to file. end stops it
// with SIGTERM.
func (l *life) strace(ctx context.Context, bin, file string) (end func() error, err error) {
	conf, err := os.ReadFile(l.world.ConfigFile())
	if err != nil {
		return nil, err
	}
	addr := strings.TrimPrefix(l.world.URL, "http://")
	conf = bytes.Replace(conf, []byte("listen: 127.0.0.1:0"), []byte("listen: "+addr), 1)
	config := filepath.Join(l.dir, "strace.yml")
	if err := os.WriteFile(config, conf, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "strace", "-f", "--seccomp-bpf", "-y", "-s", "65536", "-e", "trace=read,write,pwrite64,fdatasync,fsync", "-e", "signal=none",
		"-o", file, filepath.Join(bin, "errand"), "serve", "-c", config)
	cmd.Stdout, cmd.Stderr = l.log, l.log
	// strace ignores SIGTERM while it traces, so the signal goes to the whole group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	end = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			return err
		}
		return <-exited // ctx ends it anyway
	}
	ctx, cancel := context.WithTimeout(ctx, traced)
	defer cancel()
	return end, l.whenReady(ctx, exited)
}

// whenReady waits until errand processes webhooks.
func (l *life) whenReady(ctx context.Context, exited <-chan error) error {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		if req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.world.URL+"/readyz", http.NoBody); err != nil {
			return err
		} else if resp, err := webtest.Client().Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-exited:
			return fmt.Errorf("errand ended under strace: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("errand is not ready: %w", ctx.Err())
		case <-pause.C:
		}
	}
}

// sendHooks delivers signed webhooks from several clients at once, each of them twice.
func (l *life) sendHooks(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for client := range hookClients {
		g.Go(func() error {
			for n := range hooksEach {
				for _, from := range []int{client, (client + 1) % hookClients} {
					if err := l.sendHook(ctx, fmt.Sprintf("durable-%d-%d", from, n)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// sendHook delivers one webhook, about an issue that is not assigned to errand, as GitHub does.
func (l *life) sendHook(ctx context.Context, guid string) error {
	body := []byte(`{"action":"labeled","issue":{"number":4711,"id":4711,"title":"` + strings.Repeat("Long words about nothing. ", 100) + `"},"label":{"name":"other"},` +
		`"repository":{"id":99,"name":"other","full_name":"other/other","owner":{"login":"other","id":98}},"sender":{"login":"stranger","id":97,"type":"User"},"installation":{"id":96}}`)
	mac := hmac.New(sha256.New, []byte(l.world.GitHub.App().WebhookSecret))
	mac.Write(body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.world.URL+"/api/github/hook", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "issues")
	req.Header.Set("X-GitHub-Delivery", guid)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := webtest.Client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("webhook %s was answered %s", guid, resp.Status)
	}
	return nil
}
