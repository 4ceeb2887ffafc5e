package demo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// TestTrialEndsSandboxes stops errand while an agent works: its sandbox, which continues, ends with the trial. That of a running errand does not.
func TestTrialEndsSandboxes(t *testing.T) {
	t.Parallel()
	trial, err := demo.NewTrial(t.TempDir(), zerolog.Nop())
	check(t, err)
	t.Cleanup(func() { check(t, trial.Close()) })
	bin, data := runner(t), filepath.Join(trial.Folder, "data")
	end := func() error { return trial.EndSandboxes(t.Context(), bin) }
	check(t, end()) // there is no setup
	check(t, os.MkdirAll(data, 0o700))
	for name, text := range map[string]string{
		"pem": rsatest.PEM(), "secret": "a-secret-for-tests",
		"config.yml": fmt.Sprintf("data: %s\nlisten: 127.0.0.1:1\ngithub: {url: '%s', app_id: 1, private_key: 'file:%s', webhook_secret: 'file:%s'}\n"+
			"admin: {token: 'file:%[4]s'}\nmodels: {anthropic: {url: 'http://127.0.0.1:1', key: 'file:%[4]s'}}\nlocal: {kind: plain}\n",
			data, trial.GitHub.BaseURL(), filepath.Join(trial.Folder, "pem"), filepath.Join(trial.Folder, "secret")),
	} {
		check(t, os.WriteFile(filepath.Join(trial.Folder, name), []byte(text), 0o600))
	}
	check(t, end()) // errand was never started

	store, err := boltkv.Open(filepath.Join(data, "errand.db"), boltkv.Options{})
	check(t, err)
	signer, err := keyfile.SSH(filepath.Join(data, "client_key"))
	check(t, err)
	boxes, err := local.New(local.Config{
		Dir: filepath.Join(data, "local"), Kind: local.KindPlain, Runner: filepath.Join(bin, "errand-runner"), ClientKey: signer.PublicKey(), Deployment: "errand",
	})
	check(t, err)
	_, err = boxes.Create(t.Context(), fleet.Spec{Name: "errand-1", Labels: map[string]string{fleet.LabelOwner: "1-1"}})
	check(t, err)
	running := func() int {
		list, err := boxes.List(t.Context())
		check(t, err)
		return len(list)
	}
	if err := end(); !errors.Is(err, boltkv.ErrLocked) || running() != 1 {
		t.Errorf("while errand runs: got %v, and %d sandboxes", err, running())
	}
	check(t, store.Close())
	check(t, end())
	if n := running(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}
