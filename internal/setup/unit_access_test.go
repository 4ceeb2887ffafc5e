package setup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/setup"
)

// access returns what a unit lets a service do with a path: "write", "read", or "nothing" if it hides the path. A path of the unit counts for
// everything below it, and the longest one decides. The permissions of files are not considered.
func access(service, path string) string {
	rules := map[string]string{"/": "write"}
	for line := range strings.SplitSeq(service, "\n") {
		key, value, _ := strings.Cut(line, "=")
		switch key + "=" + value {
		case "ProtectSystem=strict":
			rules["/"], rules["/dev"] = "read", "write"
		case "ProtectHome=true", "ProtectHome=read-only":
			for _, dir := range []string{"/home", "/root", "/run/user"} {
				rules[dir] = map[string]string{"true": "nothing", "read-only": "read"}[value]
			}
		case "PrivateTmp=true":
			rules["/tmp/"], rules["/var/tmp/"] = "nothing", "nothing" // what others put there
			rules["/tmp"], rules["/var/tmp"] = "write", "write"
		case "PrivateDevices=true":
			rules["/dev/"] = "nothing"
		}
		switch key {
		case "StateDirectory":
			rules["/var/lib/"+value] = "write"
		case "ReadWritePaths":
			for _, dir := range fields(value) {
				rules[strings.TrimPrefix(dir, "-")] = "write"
			}
		}
	}
	longest := "/"
	for dir := range rules {
		below := strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") || path == dir
		if below && len(dir) > len(longest) {
			longest = dir
		}
	}
	return rules[longest]
}

// fields splits a value of a unit, in which double quotes join words.
func fields(value string) []string {
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		return []string{strings.TrimSuffix(quoted, `"`)}
	}
	return strings.Fields(value)
}

// TestUnitsGiveWhatErrandNeeds checks for several configurations that the service can read and write every file of the configuration, and hides
// the homes of users and the files of others where it needs nothing there.
func TestUnitsGiveWhatErrandNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/home", link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		program, file, text string // of the configuration
		hidden              []string
	}{
		"usual folders": {text: "data: /var/lib/errand\n", hidden: []string{"/home/ada/x", "/root/x", "/tmp/x", "/var/tmp/x", "/dev/sda"}},
		"backups":       {text: "data: /srv/errand\nbackup: {folder: /mnt/backups}\n", hidden: []string{"/home/ada/x", "/tmp/x"}},
		"blanks":        {text: "data: \"/srv/errand's data\"\nbackup: {folder: \"/mnt/my backups\"}\n"},
		"a secret in a home": {
			text: "data: /var/lib/errand\nadmin: {token: \"file:/home/ada/token\"}\n", hidden: []string{"/tmp/x"},
		},
		"a secret in root's home": {text: "data: /var/lib/errand\nadmin: {token: \"file:/root/token\"}\n"},
		"a secret among temporary files": {
			text: "data: /var/lib/errand\nadmin: {token: \"file:/var/tmp/token\"}\n", hidden: []string{"/home/ada/x"},
		},
		"a token of the provider in a home": {text: "data: /var/lib/errand\nhetzner: {token: \"file:/home/ada/token\"}\n"},
		"a login": {
			text:   "data: /var/lib/errand\nmodels: {claude: {url: https://api.anthropic.com, subscription: {login: /var/lib/errand-login/.credentials.json}}}\n",
			hidden: []string{"/home/ada/x", "/tmp/x"},
		},
		"a login in a home": {
			text: "data: /var/lib/errand\nmodels: {claude: {url: https://api.anthropic.com, subscription: {login: /home/ada/login/.credentials.json}}}\n",
		},
		"all in a home": {
			program: "/home/ada/errand/bin/errand", file: "/home/ada/.config/errand/config.yml",
			text: "data: /home/ada/.config/errand/data\nbackup: {folder: /home/ada/backups}\n", hidden: []string{"/tmp/x"},
		},
		"all among temporary files": {program: "/tmp/e/bin/errand", file: "/tmp/e/config.yml", text: "data: /tmp/e/data\nbackup: {folder: /var/tmp/b}\n", hidden: []string{"/home/ada/x"}},
		"sandboxes":                 {text: "provider: local\ndata: /srv/errand\nadmin: {token: \"file:/home/ada/token\"}\nbackup: {folder: /mnt/backups}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "github: {app_id: 1, private_key: \"file:/etc/errand/app.pem\"}\n" + c.text
			if !strings.Contains(text, "provider: ") {
				text += "provider: hetzner\n"
			}
			cfg, _ := config.Parse([]byte(text), func(string) (string, bool) { return "", false }) // the secrets do not exist here
			if !strings.Contains(text, cfg.Data) || len(cfg.SecretFiles()) != strings.Count(text, "file:")+strings.Count(text, "login:") {
				t.Fatalf("the configuration was not read: %+v", cfg)
			}
			program, file := "/opt/errand/bin/errand", "/etc/errand/config.yml"
			if c.program != "" {
				program, file = c.program, c.file
			}
			service, socket, err := setup.Units("daemon", program, file, cfg)
			if err != nil {
				t.Fatal(err)
			}
			reads := []string{program, filepath.Join(filepath.Dir(program), "errand-runner"), file}
			writes := []string{cfg.Data + "/errand.db", "/tmp", "/var/tmp"}
			for _, path := range cfg.SecretFiles() {
				reads = append(reads, path)
			}
			for _, m := range cfg.Models {
				if m.Subscription.Login != "" {
					writes = append(writes, m.Subscription.Login)
				}
			}
			if cfg.Backup.Folder != "" {
				writes = append(writes, cfg.Backup.Folder+"/errand.tar.zst")
			}
			for _, path := range reads {
				if access(service, path) == "nothing" {
					t.Errorf("errand cannot read %s:\n%s", path, service)
				}
			}
			for _, path := range writes {
				if got := access(service, path); got != "write" {
					t.Errorf("errand can %s to %s, want write:\n%s", got, path, service)
				}
			}
			for _, path := range c.hidden {
				if got := access(service, path); got != "nothing" {
					t.Errorf("errand can %s %s, which it does not need:\n%s", got, path, service)
				}
			}
			verifyUnits(t, strings.Replace(service, "ExecStart="+program, "ExecStart=/bin/true", 1), socket, cfg.Provider)
		})
	}
	cfg := serviceOf(config.ProviderHetzner)
	cfg.Data = link
	if service, _, err := setup.Units("daemon", "/bin/true", "/etc/errand/config.yml", cfg); err != nil || strings.Contains(service, "ProtectHome=true") {
		t.Errorf("a link: %v\n%s", err, service)
	}
}

// TestFolderForBackups checks that setup creates the folder for backups that the configuration names, and goes on without it.
func TestFolderForBackups(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip = []string{"installation", "webhook", "repositories"}
	if err := o.run(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "new", "backups")
	text := o.read("config.yml")
	for _, c := range []struct{ folder, says string }{
		{folder, "Created the folder for backups, " + folder + "."},
		{"/proc/backups", "Create the folder for backups, and restart errand if it runs: `sudo install -d -m 0700 -o " + o.answers["user"] + " /proc/backups`"},
	} {
		if err := os.WriteFile(filepath.Join(o.dir, "config.yml"), []byte(text+"\nbackup: {folder: "+c.folder+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.run(); err != nil {
			t.Fatal(err)
		}
		o.wantOutput(c.says, "The setup is complete")
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}
