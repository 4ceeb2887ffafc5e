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
)

// What lies on a disk besides the home, and where a box with its own files sees it.
const (
	diskSSH     = "ssh"
	insideSSH   = "/etc/ssh"
	sbinDir     = "sbin"
	hostKeyName = "ssh_host_ed25519_key"
	nextKeyName = "errand_next_ed25519_key"
)

// CommandDir is where a box with a disk has errand-hostkey. It can only be put there if the host has the folder.
const CommandDir = "/usr/local/sbin"

// CloudHome is a second name of the home in a box with a disk: that of errand's user on a cloud VM.
const CloudHome = "/home/errand"

// NewDisk makes a disk in a directory that exists: an empty home and the given private host key, a new one if
// that is nil. On a disk that has been used, the home stays and the key is replaced.
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

// DiskHostKey is the public host key of a disk in authorized_keys form.
func DiskHostKey(disk string) (string, error) {
	return publicKey(filepath.Join(disk, diskSSH, hostKeyName))
}

// homeOnHost is the host's view of the home.
func (r Record) homeOnHost(dir string) string {
	if r.Disk != "" {
		return filepath.Join(r.Disk, homeDir)
	}
	return HomePath(dir)
}

// hostKeyOnHost is the host's view of the private host key.
func (r Record) hostKeyOnHost(dir string) string {
	if r.Disk != "" {
		return filepath.Join(r.Disk, diskSSH, hostKeyName)
	}
	return HostKeyPath(dir)
}

// hostKeyInside is where the box finds its host key at each login, empty if it has it once and for all.
func (r Record) hostKeyInside() string {
	switch {
	case r.Disk == "":
		return ""
	case ownFiles(r.Kind):
		return filepath.Join(insideSSH, hostKeyName)
	}
	return filepath.Join(r.Disk, diskSSH, hostKeyName)
}

// diskView is what a box with a disk sees besides the rest: its host keys, the command that replaces them,
// and its home under the name that it has on a cloud VM.
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

// HostKey is the subcommand box-hostkey, errand-hostkey in a box with a disk: "make" prints the public half of
// a new host key, the same one until it is used; "use" puts it into effect for every login that begins later,
// and prints the key in effect. Both may be repeated.
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

// makeKey makes a private key unless there is one; it appears whole or not at all.
func makeKey(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, _, err := NewKey()
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, key, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// NewKey makes an ed25519 key: the private half in PEM form, the public one in authorized_keys form.
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
	return pem.EncodeToMemory(block), authorized(pub), nil
}

func authorized(key ssh.PublicKey) string {
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
	return authorized(signer.PublicKey()), nil
}
