package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
)

// Contact is the first contact with a VM.
type Contact interface {
	// HostKey is the host key, in authorized_keys form, that the VM was given for its first boot.
	HostKey(row state.VMRow) (string, error)
	// Greet has the VM take another host key and checks that it can be used. pin stores which keys are
	// accepted, before the VM takes the new one. It returns the keys that are accepted from then on. It
	// may be called again after any failure.
	Greet(ctx context.Context, row state.VMRow, ep remote.Endpoint, pin func(context.Context, []string) error) ([]string, error)
	// Sync has a VM that was greeted write what it holds in memory to its disk.
	Sync(ctx context.Context, ep remote.Endpoint) error
}

// What a first contact tells of the first boot, wrapped.
var (
	// ErrSettingUp: the VM answers, and what is done at its first boot goes on.
	ErrSettingUp = errors.New("its first boot goes on")
	// ErrSetUp: the first boot went wrong. The VM will never be usable.
	ErrSetUp = errors.New("its first boot went wrong")
)

// Exit codes of the tool by which it tells so.
const (
	codeSettingUp = 75
	codeSetUp     = 70
)

// greetFor bounds one first contact: a VM that does not answer is tried again with the next look.
const greetFor = 30 * time.Second

// greet makes the first contact, or does without where there is none to be made.
func (f *Fleet) greet(ctx context.Context, row state.VMRow, vm VM) error {
	var pins []string
	if f.cfg.Contact != nil {
		dressed, err := f.dressed(vm, row)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, greetFor)
		defer cancel()
		pins, err = f.cfg.Contact.Greet(ctx, row, dressed.Endpoint, func(ctx context.Context, pins []string) error {
			// Whoever has our key runs, whether the provider has said so or not.
			_, _, runsErr := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMRuns})
			_, _, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMPinned, Pins: pins})
			return errors.Join(runsErr, err)
		})
		if err != nil {
			return f.notMet(ctx, row, err)
		}
	}
	if _, _, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMRuns}); err != nil {
		return err
	}
	vm.State = StateRunning
	f.remember(vm) // first, since whoever waits for the VM wakes with the event and would ask the provider for it
	_, up, err := f.apply(ctx, row.Name, state.VMEvent{Kind: state.VMUp, Pins: pins})
	if !up || err != nil {
		f.forgetFacts(row.Name)
	}
	return err
}

// notMet keeps why a first contact failed: the VM may still be booting, or never be usable.
func (f *Fleet) notMet(ctx context.Context, row state.VMRow, cause error) error {
	f.cfg.Log.Debug().Err(cause).Str("vm", row.Name).Msg("first contact")
	f.mu.Lock()
	f.unmet[row.Name] = cause
	f.mu.Unlock()
	if !errors.Is(cause, ErrSetUp) {
		return nil
	}
	_, err := f.giveUp(ctx, row, ReasonUnusable, cause)
	return err
}

// whyUnmet is why the last first contact failed, nil if there was none.
func (f *Fleet) whyUnmet(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unmet[name]
}

// SSHContact is the first contact over SSH: as root over the host key that we gave the VM, which is
// replaced at once by one that the VM has made and nobody else has seen, then as the user who works there.
type SSHContact struct {
	// SSH has our key.
	SSH remote.Config
	// Key derives the public host key of a VM's first boot from its name.
	Key func(vm string) (string, error)
	// Root is the login that may change the host key. Default root.
	Root string
}

var _ Contact = SSHContact{}

// hostKeyTool is what the VM's user data put there. make prints the new key, the same one when called
// again; use has sshd show it.
const hostKeyTool = "/usr/local/sbin/errand-hostkey"

// HostKey implements Contact.
func (c SSHContact) HostKey(row state.VMRow) (string, error) { return c.Key(row.Name) }

// Greet implements Contact.
func (c SSHContact) Greet(ctx context.Context, row state.VMRow, ep remote.Endpoint, pin func(context.Context, []string) error) ([]string, error) {
	first, err := c.Key(row.Name)
	if err != nil {
		return nil, err
	}
	root := c.root(ep)
	made, err := c.asRoot(ctx, root, "make")
	if err != nil {
		return nil, fmt.Errorf("have a host key made: %w", err)
	}
	key, err := hostKey(made, first)
	if err != nil {
		return nil, err
	}
	// All that were accepted stay so: an earlier attempt may have got as far as to have one used.
	both := slices.Clone(ep.HostKeys)
	if !slices.Contains(both, key) {
		both = append(both, key)
	}
	if err := pin(ctx, both); err != nil {
		return nil, err
	}
	root.HostKeys = both
	if _, err := c.asRoot(ctx, root, "use"); err != nil && !errors.Is(err, remote.ErrConnectionLost) {
		return nil, fmt.Errorf("have the host key used: %w", err)
	}
	ep.HostKeys = []string{key}
	client, err := c.dialAgain(ctx, ep)
	if err != nil {
		return nil, fmt.Errorf("log in over the new host key: %w", err)
	}
	defer client.Close()
	res, err := client.Run(ctx, remote.Cmd{Argv: []string{"true"}})
	if err == nil {
		err = res.Check("first command")
	}
	return ep.HostKeys, err
}

// Sync implements Contact.
func (c SSHContact) Sync(ctx context.Context, ep remote.Endpoint) error {
	client, err := remote.Dial(ctx, c.root(ep), c.SSH)
	if err != nil {
		return fmt.Errorf("log in to sync the disk: %w", err)
	}
	defer client.Close()
	res, err := client.Run(ctx, remote.Cmd{Argv: []string{"sync"}})
	if err == nil {
		err = res.Check("sync")
	}
	return err
}

// root returns the endpoint for the login that may change the host key.
func (c SSHContact) root(ep remote.Endpoint) remote.Endpoint {
	if ep.User = c.Root; ep.User == "" {
		ep.User = "root"
	}
	return ep
}

// redial is the pause between two tries to reach an sshd that begins anew.
const redial = 200 * time.Millisecond

// dialAgain dials until somebody answers. The VM's sshd has just been told to begin anew with the other
// key; whoever gave up here would tell it so again the next time, and find it busy with that for ever.
func (c SSHContact) dialAgain(ctx context.Context, ep remote.Endpoint) (*remote.Client, error) {
	pause := time.NewTicker(redial)
	defer pause.Stop()
	for {
		client, err := remote.Dial(ctx, ep, c.SSH)
		if err == nil || !errors.Is(err, remote.ErrUnreachable) {
			return client, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// asRoot runs the tool over a connection of its own.
func (c SSHContact) asRoot(ctx context.Context, ep remote.Endpoint, verb string) ([]byte, error) {
	client, err := remote.Dial(ctx, ep, c.SSH)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	res, err := client.Run(ctx, remote.Cmd{Argv: []string{hostKeyTool, verb}, MaxOutput: 4 << 10})
	if err == nil {
		err = res.Check(hostKeyTool + " " + verb)
	}
	var exit *remote.ExitError
	if errors.As(err, &exit) {
		switch exit.Code {
		case codeSettingUp:
			err = fmt.Errorf("%w: %w", ErrSettingUp, err)
		case codeSetUp:
			err = fmt.Errorf("%w: %w", ErrSetUp, err)
		}
	}
	return res.Stdout, err
}

// hostKey reads the key that the VM printed. It has to be one, and another one than the first, which
// anybody who can read the VM's user data knows.
func hostKey(line []byte, first string) (string, error) {
	key, _, _, rest, err := ssh.ParseAuthorizedKey(line)
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return "", fmt.Errorf("the VM's new host key cannot be read: %.80q", line)
	}
	text := string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))
	old, _, _, _, err := ssh.ParseAuthorizedKey([]byte(first))
	if err != nil {
		return "", fmt.Errorf("parse the first host key: %w", err)
	}
	if bytes.Equal(old.Marshal(), key.Marshal()) {
		return "", errors.New("the VM goes on with the host key of its first boot")
	}
	return text, nil
}
