// Package rotation replaces the secret of the App's webhooks without losing any of them: the running errand accepts the old secret
// and the new one before GitHub is told the new one.
//
// The secret's file is the only state. It has one line, or during a rotation two, the new secret first. A rotation that was interrupted
// anywhere continues when it is run again.
//
// Start with [Webhook.Run].
package rotation

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/forge"
)

// Webhook is the rotation of a webhook secret.
type Webhook struct {
	File   string // with the secret
	Hook   string // URL of the webhook of the running errand, for Client, which reaches it on this host
	Client *http.Client
	GitHub GitHub
	Out    io.Writer
	Poll   time.Duration // how often errand and GitHub are asked while the rotation waits
	Wait   time.Duration // how long it waits for errand's restart
	Proof  time.Duration // how long it waits for a webhook that GitHub repeats
}

// GitHub is what a rotation needs of GitHub. See [forge.Forge].
type GitHub interface {
	SetWebhookSecret(ctx context.Context, secret string) error
	RecentDeliveries(ctx context.Context) ([]forge.Delivery, error)
	Repeat(ctx context.Context, first forge.Delivery, poll time.Duration) (forge.Delivery, error)
	AnswerHeader(ctx context.Context, id int64, name string) (string, error)
}

const (
	maxFile      = 64 << 10 // bytes
	probeTimeout = 10 * time.Second
	maxProbes    = 100000 // a bound that is never reached before the time is over
)

// Run makes a new secret, waits until the running errand accepts it, sets it at GitHub, has GitHub repeat a webhook, and removes the
// old secret from the file. After an error both are in the file, and accepted by an errand that was started since.
func (w Webhook) Run(ctx context.Context) error {
	path, err := filepath.EvalSymlinks(w.File)
	if err != nil {
		return fmt.Errorf("find the file of the webhook secret: %w", err)
	}
	w.File = path
	unlock, err := w.lock()
	if err != nil {
		return err
	}
	defer unlock()
	lines, err := w.read()
	if err != nil {
		return err
	}
	if len(lines) == 1 {
		var b [32]byte
		if _, err := rand.Read(b[:]); err != nil {
			return fmt.Errorf("create a secret: %w", err)
		}
		lines = append([]string{hex.EncodeToString(b[:])}, lines...)
		if err := w.write(lines); err != nil {
			return err
		}
		w.say("%s contains a new secret, before the present one.\n", w.File)
	} else {
		w.say("%s contains a new secret already: continuing with it.\n", w.File)
	}
	if err := w.awaitRestart(ctx, lines); err != nil {
		return err
	}
	if err := w.GitHub.SetWebhookSecret(ctx, lines[0]); err != nil {
		return fmt.Errorf("set the new secret at GitHub: %w; run this command again", err)
	}
	w.say("GitHub signs with the new secret from now on.\n")
	if err := w.prove(ctx); err != nil {
		return err
	}
	if err := w.write(lines[:1]); err != nil {
		return err
	}
	w.say("The previous secret is removed from %s. The running errand accepts it until its next start.\n", w.File)
	return nil
}

func (w Webhook) say(format string, args ...any) { _, _ = fmt.Fprintf(w.Out, format, args...) }

// lock keeps other rotations from running: one that has read the file before would write an older secret into it. The lock is on the folder,
// because the file is replaced.
func (w Webhook) lock() (unlock func(), err error) {
	f, err := os.Open(filepath.Dir(w.File))
	if err != nil {
		return nil, fmt.Errorf("lock the webhook secret: %w", err)
	}
	// Closing alone would not unlock while another goroutine starts a program, which has the file for a moment. Nothing was written.
	unlock = func() { _, _ = unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close() }
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		unlock()
		return nil, fmt.Errorf("another process is replacing the webhook secret in %s: wait until it has ended, or interrupt it", w.File)
	case err != nil:
		unlock()
		return nil, fmt.Errorf("lock the webhook secret: %w", err)
	}
	return unlock, nil
}

// read returns the secrets in the file.
func (w Webhook) read() ([]string, error) {
	f, err := os.Open(w.File)
	if err != nil {
		return nil, fmt.Errorf("read the webhook secret: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read the webhook secret: %w", err)
	}
	var lines []string // as the configuration reads them
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) < 1 || len(lines) > 2 {
		return nil, fmt.Errorf("%s has %d secrets: there must be one, or, during a rotation, the new one and the previous one", w.File, len(lines))
	}
	return lines, nil
}

// write replaces the file, and keeps its mode and its group. Only its owner may do that, so that errand can still read it.
func (w Webhook) write(lines []string) error {
	info, err := os.Stat(w.File)
	if err != nil {
		return fmt.Errorf("read the mode of the webhook secret: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user: run this command as its owner, such as with sudo", w.File)
	}
	f, err := os.CreateTemp(filepath.Dir(w.File), durable.TempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write the webhook secret: %w", err)
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	if err = errors.Join(err, f.Chown(-1, int(stat.Gid)), f.Chmod(info.Mode().Perm())); err != nil {
		return fmt.Errorf("write the webhook secret: %w", errors.Join(err, f.Close(), os.Remove(f.Name())))
	}
	if err := durable.Place(f, w.File); err != nil {
		return fmt.Errorf("write the webhook secret: %w", err)
	}
	return nil
}

// awaitRestart waits until the running errand accepts all secrets.
func (w Webhook) awaitRestart(ctx context.Context, secrets []string) error {
	wait, cancel := context.WithTimeout(ctx, w.Wait)
	defer cancel()
	t := time.NewTicker(w.Poll)
	defer t.Stop()
	told := false
	var err error
	for range maxProbes {
		if err = w.probeAll(wait, secrets); err == nil {
			w.say("The running errand accepts both secrets.\n")
			return nil
		}
		if !told {
			w.say("Now restart errand, such as with `systemctl restart errand`: it does not accept both secrets yet (%v).\n"+
				"Waiting for at most %s. Ctrl-C loses nothing: run this command again later.\n", err, w.Wait)
			told = true
		}
		select {
		case <-wait.Done():
			return fmt.Errorf("errand at %s does not accept both secrets (%w): restart it, and run this command again; nothing was changed at GitHub", w.Hook, err)
		case <-t.C:
		}
	}
	return err
}

func (w Webhook) probeAll(ctx context.Context, secrets []string) error {
	for _, secret := range secrets {
		if err := w.probe(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

// probeEvent is no event of GitHub's: errand verifies its signature, and stores nothing.
const probeEvent = "errand_secret_check"

// probe asks the running errand whether it accepts a webhook that is signed with a secret.
func (w Webhook) probe(ctx context.Context, secret string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	body := []byte("{}")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Hook, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask errand: %w", err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": probeEvent, "X-GitHub-Delivery": uuid.NewString(),
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		r.Header.Set(name, value)
	}
	resp, err := w.Client.Do(r)
	if err != nil {
		return fmt.Errorf("it cannot be reached: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxFile)) // the status is the answer
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}

// prove has GitHub repeat its latest webhook, and returns an error unless it arrives.
func (w Webhook) prove(ctx context.Context) error {
	list, err := w.GitHub.RecentDeliveries(ctx)
	if err != nil {
		return fmt.Errorf("read GitHub's log of webhooks: %w; run this command again", err)
	}
	if len(list) == 0 {
		w.say("GitHub has sent no webhook yet that it could repeat as a proof.\n")
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, w.Proof)
	defer cancel()
	got, err := w.GitHub.Repeat(wait, list[0], w.Poll)
	if err != nil {
		return fmt.Errorf("have GitHub repeat a webhook with the new secret: %w; errand accepts both secrets, so run this command again", err)
	}
	if !got.OK {
		return fmt.Errorf("GitHub repeated the webhook %q with the new secret, but it failed: %s (status %d). errand accepts both secrets: "+
			"look at `errand doctor`, and run this command again", got.Event, got.Status, got.StatusCode)
	}
	secret, err := w.GitHub.AnswerHeader(ctx, got.ID, handlers.SecretHeader)
	if err != nil {
		return fmt.Errorf("read errand's answer to the repeated webhook: %w; run this command again", err)
	}
	if secret != "1" {
		return fmt.Errorf("GitHub repeated the webhook %q, but not with the new secret; errand accepts both, so run this command again", got.Event)
	}
	w.say("GitHub repeated the webhook %q with the new secret, and it arrived.\n", got.Event)
	return nil
}
