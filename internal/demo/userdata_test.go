package demo

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// TestUserData: a sandbox finds its keys like cloud-init, and refuses unsupported user data.
func TestUserData(t *testing.T) {
	t.Parallel()
	_, one, err := box.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, two, err := box.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		text    string
		ordered []string
		host    bool
		bad     string
	}{
		"nothing":           {bad: "no client key"},
		"ordered key":       {ordered: []string{one}},
		"users' key":        {text: "#cloud-config\nusers:\n  - default\n  - name: errand\n    ssh_authorized_keys: ['" + one + "']\n"},
		"the same key":      {text: "#cloud-config\nssh_authorized_keys: ['" + one + "']\n", ordered: []string{one}},
		"two keys":          {text: "#cloud-config\nssh_authorized_keys: ['" + one + "']\n", ordered: []string{two}, bad: "single client key"},
		"host key":          {text: "#cloud-config\nssh_keys: {ed25519_private: x}\n", ordered: []string{one}, host: true},
		"a script":          {text: "#!/bin/sh\n", ordered: []string{one}, bad: "only support #cloud-config"},
		"no YAML":           {text: "#cloud-config\n{", bad: "user data: "},
		"no key":            {ordered: []string{"ssh-ed25519 AAAA"}, bad: "parse a client key"},
		"odd kind of users": {text: "#cloud-config\nusers: [{name: a, ssh_authorized_keys: 7}]\n", bad: "no client key"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseUserData([]byte(c.text), c.ordered)
			switch {
			case c.bad != "":
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("got %v, want %q", err, c.bad)
				}
			case err != nil:
				t.Error(err)
			case strings.TrimSpace(string(ssh.MarshalAuthorizedKey(got.client))) != one || (got.hostKey != nil) != c.host:
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestOwnUserData: errand's own user data for VMs gives a sandbox both keys.
func TestOwnUserData(t *testing.T) {
	t.Parallel()
	private, _, err := cloudinit.DeriveHostKey([]byte("a secret of a deployment"), "vm-1")
	if err != nil {
		t.Fatal(err)
	}
	_, line, err := box.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	client, err := parseKey(line)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cloudinit.UserData(cloudinit.Spec{Name: "vm-1", HostKey: private, ClientKey: client})
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseUserData(text, nil)
	if err != nil || string(got.hostKey) != string(private) || string(got.client.Marshal()) != string(client.Marshal()) {
		t.Errorf("got %+v, %v", got, err)
	}
}
