package cloudinit_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet/cloudinit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const secret = "0123456789abcdef0123456789abcdef"

func clientKey(t testing.TB) ssh.PublicKey {
	t.Helper()
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSpec(t testing.TB) cloudinit.Spec {
	t.Helper()
	private, _, err := cloudinit.DeriveHostKey([]byte(secret), "errand-demo-g1")
	if err != nil {
		t.Fatal(err)
	}
	return cloudinit.Spec{
		Name: "errand-demo-g1", HostKey: private, ClientKey: clientKey(t),
		ContactWithin: 90 * time.Minute, HardAfter: 6*time.Hour + time.Millisecond, Setup: "apt-get install -y golang\n",
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil { //nolint:gosec // no secret
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestUserData(t *testing.T) {
	t.Parallel()
	data, err := cloudinit.UserData(newSpec(t))
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(string(newSpec(t).HostKey))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "user-data.golden", bytes.Replace(data, quoted, []byte(`"(the host key)"`), 1))
	if again, err := cloudinit.UserData(newSpec(t)); err != nil || !bytes.Equal(data, again) {
		t.Errorf("got different bytes for the same Spec, error %v", err)
	}
	if !bytes.HasPrefix(data, []byte("#cloud-config\n")) {
		t.Error("cloud-init does not recognize the header")
	}
	if len(data) > cloudinit.MaxSize/2 {
		t.Errorf("got %d bytes leave too little room for a setup", len(data))
	}
}

// document is what another parser reads.
type document struct {
	DeleteKeys bool              `yaml:"ssh_deletekeys"`
	Keys       map[string]string `yaml:"ssh_keys"`
	Passwords  *bool             `yaml:"ssh_pwauth"`
	Users      []struct {
		Name   string   `yaml:"name"`
		Sudo   any      `yaml:"sudo"`
		Groups any      `yaml:"groups"`
		Keys   []string `yaml:"ssh_authorized_keys"`
	} `yaml:"users"`
	Files []struct {
		Path        string `yaml:"path"`
		Permissions string `yaml:"permissions"`
		Content     string `yaml:"content"`
	} `yaml:"write_files"`
	Run [][]string `yaml:"runcmd"`
}

func parse(t *testing.T, spec cloudinit.Spec) (document, []byte) {
	t.Helper()
	data, err := cloudinit.UserData(spec)
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc, data
}

func (d document) file(path string) (content string, ok bool) {
	for _, f := range d.Files {
		if f.Path == path {
			return f.Content, true
		}
	}
	return "", false
}

func TestUserDataSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	spec := newSpec(t)
	doc, data := parse(t, spec)
	_, public, err := cloudinit.DeriveHostKey([]byte(secret), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Keys["ed25519_private"] != string(spec.HostKey) || doc.Keys["ed25519_public"] != public || !doc.DeleteKeys {
		t.Error("got other host keys than the given one")
	}
	if doc.Passwords != nil {
		t.Error("cloud-init would restart sshd during the first boot")
	}
	if sshd, _ := doc.file("/etc/ssh/sshd_config.d/00-errand.conf"); !strings.Contains(sshd, "PasswordAuthentication no\nKbdInteractiveAuthentication no\n") {
		t.Error("passwords are not disabled")
	}
	client := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(spec.ClientKey)))
	for i, name := range []string{"root", "errand", "errand-runner"} {
		u := doc.Users[i]
		if u.Name != name || u.Sudo != nil || u.Groups != nil || !cmp.Equal(u.Keys, []string{client}) {
			t.Errorf("user %d: got %+v", i, u)
		}
	}
	if keys, ok := doc.file("/etc/ssh/errand_keys"); !ok || keys != client+"\n" {
		t.Errorf("got logins %q for errand", keys)
	}
	for _, path := range []string{"/etc/cron.allow", "/etc/at.allow"} {
		if who, ok := doc.file(path); !ok || who != "root\n" {
			t.Errorf("got %q as those who may schedule commands by %s", path, who)
		}
	}
	if rules, _ := doc.file("/etc/sudoers.d/errand"); strings.Count(rules, "=(") != 1 || !strings.Contains(rules, "\nerrand-runner ALL=(errand) NOPASSWD: ALL\n") {
		t.Errorf("got sudo rules %q", rules)
	}
	if len(doc.Users) != 3 {
		t.Errorf("got %d users", len(doc.Users))
	}
	if conf, _ := doc.file("/etc/errand/deadman.conf"); conf != "contact_within=5400\nhard_after=21601\n" {
		t.Errorf("got times of the dead-man switch %q", conf)
	}
	if n := bytes.Count(data, []byte("PRIVATE KEY")); n != 2 {
		t.Errorf("%d lines about private keys, want those of one", n)
	}
	if bytes.Contains(data, []byte(secret)) {
		t.Error("the user data contains the deployment's secret")
	}
}

func TestNothingIsPasted(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{
		"quotes":    `echo "it's" $(id) ` + "`id`" + ` \ \\ "` + "\n",
		"yaml":      "- a: b\n  c: |\n\td: #x\n--- \n...\n}}{{%",
		"unicode":   "echo ü\u2028\u2029\ufeff\u0085😀\n",
		"controls":  "a\x01\x1b[2J\x7f\r\nb\r",
		"spaces":    "  lead \n\n trail  \n   ",
		"html":      "<a href=x>&amp;</a>",
		"jinja":     "## template: jinja\n{{ v1.instance_id }}",
		"long line": strings.Repeat("x ", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t)
			spec.Setup = setup
			doc, _ := parse(t, spec)
			if got, _ := doc.file("/etc/errand/setup"); got != setup {
				t.Errorf("got setup %q", got)
			}
			if diff := cmp.Diff([][]string{{"/usr/local/sbin/errand-firstboot"}}, doc.Run); diff != "" {
				t.Errorf("what runs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserDataRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*cloudinit.Spec){
		"no name":         func(s *cloudinit.Spec) { s.Name = "" },
		"odd name":        func(s *cloudinit.Spec) { s.Name = "a\nb" },
		"no client key":   func(s *cloudinit.Spec) { s.ClientKey = nil },
		"no host key":     func(s *cloudinit.Spec) { s.HostKey = nil },
		"odd host key":    func(s *cloudinit.Spec) { s.HostKey = []byte("PRIVATE") },
		"binary setup":    func(s *cloudinit.Spec) { s.Setup = "a\xff" },
		"zero byte":       func(s *cloudinit.Spec) { s.Setup = "a\x00" },
		"a negative time": func(s *cloudinit.Spec) { s.HardAfter = -1 },
		"too much":        func(s *cloudinit.Spec) { s.Setup = strings.Repeat("x", cloudinit.MaxSize) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t)
			change(&spec)
			if data, err := cloudinit.UserData(spec); err == nil {
				t.Errorf("got no error for %d bytes, want one", len(data))
			} else if strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func FuzzSetup(f *testing.F) {
	for _, s := range []string{"", "echo\n", "\"", "\u2028", "\\u0041", "\t\x1f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, setup string) {
		spec := newSpec(t)
		spec.Setup = setup
		data, err := cloudinit.UserData(spec)
		if err != nil {
			return
		}
		var doc document
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if got, _ := doc.file("/etc/errand/setup"); got != setup || len(doc.Run) != 1 || len(doc.Users) != 3 {
			t.Errorf("%q: got %q", setup, got)
		}
	})
}
