// Package cloudinit creates the user data of a cloud VM: the instructions for cloud-init at its first boot, so that the
// first connection is verified and only errand can log in.
//
// The document's only secret is the host key of the first contact, which is replaced over the first connection
// (errand-hostkey). It is derived from a secret of the deployment and the VM's name, so that it need not be stored and
// an order can be repeated. Configured values are only put into files and JSON strings, never into a line that a shell
// parses. The scripts are in the folder files; they run on any Debian or Ubuntu, with or without systemd.
//
// A VM has two users besides root. The agent works as errand. errand-runner owns run records and the tether, which the
// agent must not touch, and may become errand by sudo. Neither may become any other user.
//
// Start here: [UserData].
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
	// MaxSize is the limit of providers, in bytes.
	MaxSize = 32 << 10
	// HostKeyCommand replaces the host key, as root: "make" prints a new public key, "use" makes sshd use it. During
	// the first boot make exits with 75, after a failed first boot with 70, and prints the progress on stderr.
	HostKeyCommand = "/usr/local/sbin/errand-hostkey"
	// CleanCommand prepares the VM for use as a base image; run it as root and last. It does nothing on a VM that
	// errand's user data did not set up.
	CleanCommand = "/usr/local/sbin/errand-clean"
	// ContactFile is touched, as root, to keep the VM running without a login.
	ContactFile = "/run/errand/contact"
	// BakedFile marks a base image: packages and Setup are already installed.
	BakedFile = "/etc/errand/baked"
	// LogFile contains the output of the first boot's steps.
	LogFile = "/var/lib/errand/firstboot.log"
)

//go:embed files
var files embed.FS

// Spec is the data that differs between VMs.
type Spec struct {
	// Name is the VM's name and host name.
	Name string
	// HostKey is the private key of the first contact, from [DeriveHostKey].
	HostKey []byte
	// ClientKey is the only key accepted for root, errand and errand-runner.
	ClientKey ssh.PublicKey
	// ContactWithin is how long the VM stays on without contact; 0 means forever.
	ContactWithin time.Duration
	// HardAfter is the VM's maximum uptime; 0 means forever.
	HardAfter time.Duration
	// Setup runs as root in bash at the first boot of a VM without a baked image.
	Setup string
}

// cloudConfig is the used part of cloud-init's configuration. JSON is YAML with a single way of quoting strings.
// ssh_pwauth is omitted, because it would make cloud-init restart sshd during the first boot, and the generated sshd
// configuration already covers it.
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

// UserData returns the document for cloud-init. The same Spec gives the same bytes.
func UserData(spec Spec) ([]byte, error) {
	public, err := check(spec)
	if err != nil {
		return nil, fmt.Errorf("user data of %s: %w", spec.Name, err)
	}
	client := authorized(spec.ClientKey)
	cfg := cloudConfig{
		Hostname: spec.Name, DeleteKeys: true,
		Hosts:   "localhost", // sudo resolves the machine's own name, for which there may be no DNS
		Keys:    map[string]string{"ed25519_private": string(spec.HostKey), "ed25519_public": public},
		Console: map[string]bool{"emit_keys_to_console": false},
		Users: []user{
			{Name: "root", Lock: true, Keys: []string{client}},
			// No password matches "*", and unlike a locked account it accepts keys even without PAM.
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
		return nil, fmt.Errorf("user data of %s: %d bytes, at most %d; the setup has %d", spec.Name, out.Len(), MaxSize, len(spec.Setup))
	}
	return out.Bytes(), nil
}

// check returns the public half of the host key.
func check(spec Spec) (public string, err error) {
	switch {
	case spec.Name == "" || strings.Trim(spec.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return "", errors.New("the name must consist of a-z, 0-9 and hyphens")
	case spec.ClientKey == nil:
		return "", errors.New("no client key")
	case !utf8.ValidString(spec.Setup) || strings.ContainsRune(spec.Setup, 0):
		return "", errors.New("the setup is not text")
	case spec.ContactWithin < 0 || spec.HardAfter < 0:
		return "", errors.New("a negative time limit")
	}
	signer, err := ssh.ParsePrivateKey(spec.HostKey)
	if err != nil {
		return "", errors.New("the host key is invalid") // do not quote the key
	}
	if signer.PublicKey().Type() != ssh.KeyAlgoED25519 {
		return "", fmt.Errorf("the host key is of type %s", signer.PublicKey().Type())
	}
	return authorized(signer.PublicKey()), nil
}

func writeFiles(spec Spec) ([]file, error) {
	out := []file{
		{Path: "/var/lib/errand/firstboot", Permissions: "0644", Content: "waits for cloud-init\n"},
		// Empty: the age counts from this boot, even on a disk that was another machine's.
		{Path: "/var/lib/errand/born", Permissions: "0644"},
		{Path: "/etc/errand/deadman.conf", Permissions: "0644", Content: fmt.Sprintf(
			"contact_within=%d\nhard_after=%d\n", seconds(spec.ContactWithin), seconds(spec.HardAfter))},
		// Cron jobs of an agent would outlive its run.
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

// seconds rounds up, so that a short time never becomes "forever".
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func authorized(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
