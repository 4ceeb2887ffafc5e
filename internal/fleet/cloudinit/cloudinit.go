// Package cloudinit writes the user data of a cloud VM: what cloud-init does at its first boot, so that
// the first connection is a verified one and nobody but errand gets in.
//
// The document holds no secret but the host key of the first contact, which is replaced over the first
// connection (errand-hostkey). It is derived from a secret of the deployment and the VM's name, so that
// nobody has to store it and an order can be repeated. Whatever a configuration says goes into files and
// JSON strings, never into a line that a shell reads. The scripts are the files in the folder files; they
// run on any Debian or Ubuntu, with systemd or without.
//
// A VM has two users besides root. The agent works as errand; errand-runner keeps the records of runs and the tether, which
// the agent must not touch, and may become errand by sudo. Neither may become anybody else.
//
// Start reading at UserData.
package cloudinit

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

const (
	// MaxSize is what a provider takes, in bytes.
	MaxSize = 32 << 10
	// HostKeyCommand replaces the host key, as root: with "make" it prints a new public key, with "use" it
	// has sshd answer with it. make ends with 75 while the first boot goes on, with 70 if it went wrong,
	// and says on stderr how far it is.
	HostKeyCommand = "/usr/local/sbin/errand-hostkey"
	// CleanCommand makes the VM fit to be a base image, as root and as the last thing. On what errand's user
	// data has not set up it does nothing.
	CleanCommand = "/usr/local/sbin/errand-clean"
	// ContactFile is touched by whoever wants the VM to live on without being logged in, as root.
	ContactFile = "/run/errand/contact"
	// BakedFile marks a base image: packages and Setup are in it already.
	BakedFile = "/etc/errand/baked"
	// LogFile has what the first boot's steps printed.
	LogFile = "/var/lib/errand/firstboot.log"
)

//go:embed files
var files embed.FS

// Spec is what differs between VMs.
type Spec struct {
	// Name is the VM's, and its host name.
	Name string
	// HostKey is the private key of the first contact, as DeriveHostKey makes it.
	HostKey []byte
	// ClientKey is the only key that root, errand and errand-runner are logged in with.
	ClientKey ssh.PublicKey
	// ContactWithin is how long the VM stays up without anybody in touch; 0 is for ever.
	ContactWithin time.Duration
	// HardAfter is how long it stays up at all; 0 is for ever.
	HardAfter time.Duration
	// Setup is run as root by bash at the first boot of a VM that has no baked image.
	Setup string
}

// cloudConfig is the part of cloud-init's configuration that we use. JSON is YAML, and has one way of
// writing a string. ssh_pwauth is not in it: it would have cloud-init restart sshd in the middle of the first
// boot, and says nothing that our file for sshd does not say.
type cloudConfig struct {
	Hostname   string            `json:"hostname"`
	Hosts      string            `json:"manage_etc_hosts"`
	DeleteKeys bool              `json:"ssh_deletekeys"`
	Keys       map[string]string `json:"ssh_keys"`
	Console    map[string]bool   `json:"ssh"`
	NoRoot     bool              `json:"disable_root"`
	Users      []user            `json:"users"`
	Files      []file            `json:"write_files"`
	Run        [][]string        `json:"runcmd"`
}

type user struct {
	Name  string   `json:"name"`
	Shell string   `json:"shell,omitempty"`
	Home  string   `json:"homedir,omitempty"`
	Lock  bool     `json:"lock_passwd"`
	Hash  string   `json:"passwd,omitempty"`
	Keys  []string `json:"ssh_authorized_keys"`
}

type file struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Content     string `json:"content"`
}

// UserData is the document for cloud-init. The same Spec gives the same bytes.
func UserData(spec Spec) ([]byte, error) {
	public, err := check(spec)
	if err != nil {
		return nil, fmt.Errorf("user data of %s: %w", spec.Name, err)
	}
	client := authorized(spec.ClientKey)
	cfg := cloudConfig{
		Hostname: spec.Name, DeleteKeys: true,
		Hosts:   "localhost", // sudo asks for the machine's own name, which nobody may be there to tell
		Keys:    map[string]string{"ed25519_private": string(spec.HostKey), "ed25519_public": public},
		Console: map[string]bool{"emit_keys_to_console": false},
		Users: []user{
			{Name: "root", Lock: true, Keys: []string{client}},
			// No password fits "*", and unlike a locked account it takes keys without PAM, too.
			{Name: "errand", Shell: "/bin/bash", Home: "/home/errand", Hash: "*", Keys: []string{client}},
			{Name: "errand-runner", Shell: "/bin/bash", Home: "/home/errand-runner", Hash: "*", Keys: []string{client}},
		},
		Run: [][]string{{"/usr/local/sbin/errand-firstboot"}},
	}
	if cfg.Files, err = writeFiles(spec); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("#cloud-config\n")
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(cfg); err != nil {
		return nil, fmt.Errorf("user data of %s: %w", spec.Name, err)
	}
	if out.Len() > MaxSize {
		return nil, fmt.Errorf("user data of %s: %d bytes, %d are the most; the setup has %d", spec.Name, out.Len(), MaxSize, len(spec.Setup))
	}
	return out.Bytes(), nil
}

// check returns the host key's public half.
func check(spec Spec) (public string, err error) {
	switch {
	case spec.Name == "" || strings.Trim(spec.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return "", errors.New("the name has to consist of a-z, 0-9 and hyphens")
	case spec.ClientKey == nil:
		return "", errors.New("no client key")
	case !utf8.ValidString(spec.Setup) || strings.ContainsRune(spec.Setup, 0):
		return "", errors.New("the setup is no text")
	case spec.ContactWithin < 0 || spec.HardAfter < 0:
		return "", errors.New("a time below zero")
	}
	signer, err := ssh.ParsePrivateKey(spec.HostKey)
	if err != nil {
		return "", errors.New("the host key is none") // and no word of what it is
	}
	if signer.PublicKey().Type() != ssh.KeyAlgoED25519 {
		return "", fmt.Errorf("the host key is of type %s", signer.PublicKey().Type())
	}
	return authorized(signer.PublicKey()), nil
}

func writeFiles(spec Spec) ([]file, error) {
	out := []file{
		{Path: "/var/lib/errand/firstboot", Permissions: "0644", Content: "waits for cloud-init\n"},
		// Empty: its age counts from this boot, also on a disk that has been another machine's.
		{Path: "/var/lib/errand/born", Permissions: "0644"},
		{Path: "/etc/errand/deadman.conf", Permissions: "0644", Content: fmt.Sprintf(
			"contact_within=%d\nhard_after=%d\n", seconds(spec.ContactWithin), seconds(spec.HardAfter))},
		// What an agent has begun later would outlive its run.
		{Path: "/etc/cron.allow", Permissions: "0644", Content: "root\n"},
		{Path: "/etc/at.allow", Permissions: "0644", Content: "root\n"},
		{Path: "/etc/ssh/errand_keys", Permissions: "0644", Content: authorized(spec.ClientKey) + "\n"},
	}
	for _, f := range []struct{ name, path, permissions string }{
		{"sshd.conf", "/etc/ssh/sshd_config.d/00-errand.conf", "0644"},
		{"sudoers", "/etc/sudoers.d/errand", "0440"},
		{"ssh.conf", "/etc/systemd/system/ssh.service.d/errand.conf", "0644"},
		{"metadata.nft", "/etc/errand/metadata.nft", "0644"},
		{"errand-metadata", "/usr/local/sbin/errand-metadata", "0755"},
		{"errand-metadata.service", "/etc/systemd/system/errand-metadata.service", "0644"},
		{"errand-deadman", "/usr/local/sbin/errand-deadman", "0755"},
		{"errand-deadman.service", "/etc/systemd/system/errand-deadman.service", "0644"},
		{"errand-deadman.timer", "/etc/systemd/system/errand-deadman.timer", "0644"},
		{"containers.conf", "/etc/containers/containers.conf.d/50-errand.conf", "0644"},
		{"errand-hostkey", HostKeyCommand, "0755"},
		{"errand-firstboot", "/usr/local/sbin/errand-firstboot", "0755"},
		{"errand-clean", CleanCommand, "0755"},
	} {
		data, err := files.ReadFile("files/" + f.name)
		if err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		out = append(out, file{Path: f.path, Permissions: f.permissions, Content: string(data)})
	}
	if spec.Setup != "" {
		out = append(out, file{Path: "/etc/errand/setup", Permissions: "0700", Content: spec.Setup})
	}
	return out, nil
}

// seconds rounds up, so that a short time never becomes "for ever".
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// CleanUp is the text of CleanCommand, for VMs that may have an older one.
func CleanUp() ([]byte, error) {
	data, err := files.ReadFile("files/errand-clean")
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return data, nil
}

func authorized(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
