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
	"github.com/errand-bot/errand/state/vm"
)

// A Contact makes the first contact with a VM.
type Contact interface {
	// HostKey returns the host key, in authorized_keys form, that the VM was given for its first boot.
	HostKey(row vm.Row) (string, error)
	// Greet replaces the VM's host key and checks the new one. pin stores the accepted keys before the VM uses the new
	// one. Greet returns the keys accepted from then on. It may be called again after any failure.
	Greet(ctx context.Context, row vm.Row, ep remote.Endpoint, pin func(context.Context, []string) error) ([]string, error)
	// Sync makes a VM flush its file systems to disk.
	Sync(ctx context.Context, ep remote.Endpoint) error
}

// Errors of a first contact during the first boot. They arrive wrapped.
var (
	// ErrSettingUp means that the VM responds but its first boot has not finished.
	ErrSettingUp = errors.New("its first boot has not finished")
	// ErrSetUp means that the first boot failed. The VM will never be usable.
	ErrSetUp = errors.New("its first boot failed")
)

// Exit codes of the VM's host key tool that report these errors.
const (
	codeSettingUp = 75
	codeSetUp     = 70
)

// SSHContact makes the first contact over SSH: as root with the host key given to the VM, which it immediately replaces
// by one generated on the VM that nobody else has seen; then as the working user.
type SSHContact struct {
	// SSH contains the client key.
	SSH remote.Config
	// Key derives the public host key of a VM's first boot from its name.
	Key func(server string) (string, error)
	// Root is the login that may change the host key; root by default.
	Root string
}

var _ Contact = SSHContact{}

// hostKeyTool is installed by the VM's user data. Its command "make" prints the new key, the same one on each call;
// "use" makes sshd use it.
const hostKeyTool = "/usr/local/sbin/errand-hostkey"

// HostKey implements [Contact].
func (c SSHContact) HostKey(row vm.Row) (string, error) { return c.Key(row.Name) }

// Greet implements [Contact].
func (c SSHContact) Greet(
	ctx context.Context, row vm.Row, ep remote.Endpoint, pin func(context.Context, []string) error,
) ([]string, error) {
	first, err := c.Key(row.Name)
	if err != nil {
		return nil, err
	}
	root := c.rootEndpoint(ep)
	made, err := c.asRoot(ctx, root, "make")
	if err != nil {
		return nil, fmt.Errorf("create a host key: %w", err)
	}
	key, err := hostKey(made, first)
	if err != nil {
		return nil, err
	}
	// Keep all accepted keys: an earlier attempt may have activated one of them.
	both := slices.Clone(ep.HostKeys)
	if !slices.Contains(both, key) {
		both = append(both, key)
	}
	if err := pin(ctx, both); err != nil {
		return nil, err
	}
	root.HostKeys = both
	if _, err := c.asRoot(ctx, root, "use"); err != nil && !errors.Is(err, remote.ErrConnectionLost) {
		return nil, fmt.Errorf("activate the host key: %w", err)
	}
	ep.HostKeys = []string{key}
	client, err := c.reconnect(ctx, ep)
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

// Sync implements [Contact].
func (c SSHContact) Sync(ctx context.Context, ep remote.Endpoint) error {
	client, err := remote.Dial(ctx, c.rootEndpoint(ep), c.SSH)
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

// rootEndpoint returns the endpoint of the login that may change the host key.
func (c SSHContact) rootEndpoint(ep remote.Endpoint) remote.Endpoint {
	if ep.User = c.Root; ep.User == "" {
		ep.User = "root"
	}
	return ep
}

// redialPause is the pause between attempts to reach a restarting sshd.
const redialPause = 200 * time.Millisecond

// reconnect dials until the VM's sshd, which is restarting with the new key, responds. Giving up early would cause the
// next attempt to restart sshd again, and so on.
func (c SSHContact) reconnect(ctx context.Context, ep remote.Endpoint) (*remote.Client, error) {
	pause := time.NewTicker(redialPause)
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

// asRoot runs the host key tool over a separate connection.
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

// hostKey parses the key that the VM printed. It must be a single key that differs from the first one, which is known
// to anyone who can read the VM's user data.
func hostKey(line []byte, first string) (string, error) {
	key, _, _, rest, err := ssh.ParseAuthorizedKey(line)
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return "", fmt.Errorf("invalid new host key: %.80q", line)
	}
	text := string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))
	old, _, _, _, err := ssh.ParseAuthorizedKey([]byte(first))
	if err != nil {
		return "", fmt.Errorf("parse the first host key: %w", err)
	}
	if bytes.Equal(old.Marshal(), key.Marshal()) {
		return "", errors.New("the VM still uses the host key of its first boot")
	}
	return text, nil
}
