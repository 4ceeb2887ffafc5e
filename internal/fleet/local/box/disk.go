package box

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/durable"
)

// Further content of a disk besides the home, and its path inside an isolated sandbox.
const (
	diskSSH     = "ssh"
	insideSSH   = "/etc/ssh"
	sbinDir     = "sbin"
	hostKeyName = "ssh_host_ed25519_key"
	nextKeyName = "errand_next_ed25519_key"
)

// CommandDir is the folder of errand-hostkey in a sandbox with a disk. It requires that the host has the folder.
const CommandDir = "/usr/local/sbin"

// CloudHome is a second path of the home in a sandbox with a disk: that of errand's user on a cloud VM.
const CloudHome = "/home/errand"

// NewDisk initializes a disk in an existing directory: an empty home and the given private host key, or a new one if
// that is nil. On a used disk, it keeps the home and replaces the key.
func NewDisk(disk string, hostKey []byte) error {
	if hostKey == nil {
		var err error
		if hostKey, _, err = NewKey(); err != nil {
			return err
		}
	}
	keys := filepath.Join(disk, diskSSH)
	if err := os.RemoveAll(keys); err != nil {
		return err
	}
	for _, d := range []string{keys, filepath.Join(disk, homeDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(keys, hostKeyName), hostKey, 0o600)
}

// DiskHostKey returns the public host key of a disk in authorized_keys form.
func DiskHostKey(disk string) (string, error) {
	return publicKey(filepath.Join(disk, diskSSH, hostKeyName))
}

// homeOnHost is the host's path of the home.
func (r Record) homeOnHost(dir string) string {
	if r.Disk != "" {
		return filepath.Join(r.Disk, homeDir)
	}
	return HomePath(dir)
}

// hostKeyOnHost is the host's path of the private host key.
func (r Record) hostKeyOnHost(dir string) string {
	if r.Disk != "" {
		return filepath.Join(r.Disk, diskSSH, hostKeyName)
	}
	return HostKeyPath(dir)
}

// hostKeyInside is the path from which the sandbox reads its host key at each login, empty if the key is fixed.
func (r Record) hostKeyInside() string {
	switch {
	case r.Disk == "":
		return ""
	case ownFiles(r.Kind):
		return filepath.Join(insideSSH, hostKeyName)
	}
	return filepath.Join(r.Disk, diskSSH, hostKeyName)
}

// diskView returns the additional mounts of a sandbox with a disk: its host keys, the command that replaces them, and
// its home under the name that it has on a cloud VM.
func diskView(rec Record, dir string) ([]mount, error) {
	if rec.Disk == "" {
		return nil, nil
	}
	sbin := filepath.Join(dir, sbinDir)
	if err := os.MkdirAll(sbin, 0o755); err != nil {
		return nil, err
	}
	script := "#!/bin/sh\nexec " + insideRunner + " box-hostkey -dir " + insideSSH + " \"$@\"\n"
	if err := writeForBox(filepath.Join(sbin, "errand-hostkey"), script, 0o755); err != nil {
		return nil, fmt.Errorf("write errand-hostkey for the box: %w", err)
	}
	return []mount{
		{Do: mountBind, From: filepath.Join(rec.Disk, diskSSH), To: insideSSH, Writable: true},
		{Do: mountBind, From: sbin, To: CommandDir},
		{Do: mountLink, From: InsideHome, To: CloudHome},
	}, nil
}

// HostKey is the subcommand box-hostkey, errand-hostkey in a sandbox with a disk. "make" prints the public half of a
// new host key, the same one until it is used; "use" activates it for later logins and prints the active key. Both may
// be repeated.
func HostKey(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("box-hostkey", flag.ContinueOnError)
	dir := flags.String("dir", insideSSH, "the `directory` of host keys")
	if err := flags.Parse(args); err != nil {
		return err
	}
	key, next := filepath.Join(*dir, hostKeyName), filepath.Join(*dir, nextKeyName)
	show := key
	switch flags.Arg(0) {
	case "make":
		if err := makeKey(next); err != nil {
			return err
		}
		show = next
	case "use":
		if err := os.Rename(next, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	default:
		return errors.New("usage: errand-hostkey make|use")
	}
	public, err := publicKey(show)
	if err != nil {
		return err
	}
	_, err = fmt.Println(public)
	return err
}

// makeKey atomically creates a private key unless it exists.
func makeKey(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, _, err := NewKey()
	if err != nil {
		return err
	}
	return durable.WriteFile(path, key, 0o600)
}

// NewKey generates an ed25519 key: the private half in PEM form, the public one in authorized_keys form.
func NewKey() (private []byte, public string, err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, "", fmt.Errorf("make host key: %w", err)
	}
	pub, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, "", fmt.Errorf("make host key: %w", err)
	}
	return pem.EncodeToMemory(block), authorizedKey(pub), nil
}

func authorizedKey(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func publicKey(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return "", fmt.Errorf("parse host key: %w", err)
	}
	return authorizedKey(signer.PublicKey()), nil
}
