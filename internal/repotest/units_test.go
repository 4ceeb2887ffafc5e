package repotest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unit matches a systemd unit in a document: its path, and its text.
var unit = regexp.MustCompile("(?s)`/etc/systemd/system/(errand[.][a-z]+)`:\n\n```ini\n(.*?)```")

// TestUnits has systemd check the units of docs/deployment.md, and judge how much of the host the service can reach: 0 is nothing, 10
// everything.
func TestUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("skipped: systemd-analyze is not installed, which checks the units of docs/deployment.md")
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/deployment.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	for _, m := range unit.FindAllStringSubmatch(string(text), -1) {
		// The program and the user have to exist on the host that checks.
		fitted := strings.NewReplacer("ExecStart=/opt/errand/bin/errand", "ExecStart=/bin/true", "User=errand", "User=daemon").Replace(m[2])
		file := filepath.Join(dir, m[1])
		if err := os.WriteFile(file, []byte(fitted), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) != 2 {
		t.Fatalf("got units %q, want a socket and a service", files)
	}
	out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify"}, files...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", files[1]).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
