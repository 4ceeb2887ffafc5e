package programs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/agent/programs"
)

// fakeNPM puts a program npm first in PATH. It creates what npm would for one of Claude Code's packages.
func fakeNPM(t *testing.T, more string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nset -e\n[ \"$1 $2\" = 'ci --ignore-scripts' ]\n" + more + `
p=node_modules/@anthropic-ai/claude-code-linux-x64
mkdir -p $p
printf '#!/bin/sh\necho 1.0' >$p/claude
chmod 700 $p/claude
`
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestInstall installs a program twice, over an interrupted attempt and over an older version. Every user can run it, whatever the umask.
func TestInstall(t *testing.T) {
	fakeNPM(t, "umask 077\n[ -z \"$MODEL_KEY\" ]")
	t.Setenv("MODEL_KEY", "a secret that npm does not get")
	defer syscall.Umask(syscall.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "programs")
	if programs.Installed(dir, "claude") {
		t.Error("installed before the installation")
	}
	if err := os.MkdirAll(filepath.Join(dir, ".claude.new", "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := programs.Install(t.Context(), dir, "claude"); err != nil {
			t.Fatal(err)
		}
		if !programs.Installed(dir, "claude") || programs.Installed(dir, "codex") {
			t.Error("the program is not installed, or another one is")
		}
		lock := filepath.Join(dir, "claude", "package-lock.json")
		if err := os.WriteFile(lock, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		if programs.Installed(dir, "claude") {
			t.Error("an older version counts as installed")
		}
	}
	program, err := filepath.EvalSymlinks(filepath.Join(programs.Bin(dir), "claude"))
	if err != nil {
		t.Fatal(err)
	}
	for path := program; path != filepath.Dir(dir); path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v (%v)", path, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 { // bin, claude, lock
		t.Errorf("the folder has %v (%v)", entries, err)
	}
}

// TestInstallFails checks that nothing counts as installed, and that an installed version stays, after each failure.
func TestInstallFails(t *testing.T) {
	for name, c := range map[string]struct{ npm, program, want string }{
		"npm fails":           {"echo registry is away; exit 1", "claude", "npm could not install claude"},
		"npm installs little": {"exit 0", "claude", "npm installed no claude for this kind of computer"},
		"two of a kind":       {"mkdir -p node_modules/@anthropic-ai/claude-code-linux-arm64; touch node_modules/@anthropic-ai/claude-code-linux-arm64/claude", "claude", "found 2 programs"},
		"unknown":             {"", "vim", "cannot be installed by errand"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fakeNPM(t, "")
			if err := programs.Install(t.Context(), dir, "claude"); err != nil {
				t.Fatal(err)
			}
			fakeNPM(t, c.npm)
			err := programs.Install(t.Context(), dir, c.program)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, not %v", c.want, err)
			}
			if !programs.Installed(dir, "claude") {
				t.Error("the installed version is gone")
			}
		})
	}
	t.Run("old Node.js", func(t *testing.T) {
		fakeNPM(t, "")
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "node"), []byte("#!/bin/sh\necho v18.19.1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		if err := programs.Install(t.Context(), t.TempDir(), "gemini"); err == nil || !strings.Contains(err.Error(), `needs Node.js 20 or later, but `+"`node --version`"+` says "v18.19.1"`) {
			t.Errorf("with Node.js 18: %v", err)
		}
	})
	t.Run("no npm", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if err := programs.Install(t.Context(), t.TempDir(), "claude"); err == nil || !strings.Contains(err.Error(), "apt-get install nodejs npm") {
			t.Errorf("without npm: %v", err)
		}
	})
	t.Run("at the same time", func(t *testing.T) {
		fakeNPM(t, "")
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		if err := programs.Install(t.Context(), dir, "claude"); err == nil || !strings.Contains(err.Error(), "another installation is running") {
			t.Errorf("a second installation: %v", err)
		}
	})
}

// TestDocumentedVersions compares the commands in the manual with the versions here.
func TestDocumentedVersions(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	manual := read("../../../docs/agents.md") + read("../../../docs/agent-programs.md")
	for _, name := range programs.Names() {
		if programs.Version(name) == "" || !strings.Contains(manual, "@"+programs.Version(name)) {
			t.Errorf("the manual lacks version %q of %s", programs.Version(name), name)
		}
		for line := range strings.Lines(programs.Script(name)) {
			if !strings.HasPrefix(line, "npm install") && !strings.Contains(manual, line) {
				t.Errorf("docs/agents.md lacks the line %s", line)
			}
		}
	}
}
