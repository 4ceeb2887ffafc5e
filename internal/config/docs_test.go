package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

var yamlBlock = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```")

// inDocument returns the first YAML of a document after a line, without the indentation of the item that it is in.
func inDocument(t *testing.T, path, after string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), after)
	m := yamlBlock.FindStringSubmatch(rest)
	if m == nil {
		t.Fatalf("%s has no YAML", path)
	}
	indent := m[1][:len(m[1])-len(strings.TrimLeft(m[1], " "))]
	return strings.ReplaceAll("\n"+m[1], "\n"+indent, "\n")
}

// TestConfigurationInInstallGuide: errand accepts the file of docs/install.md once the secrets that it names exist.
func TestConfigurationInInstallGuide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"webhook-secret", "admin-token", "anthropic-key"} {
		write(t, filepath.Join(dir, name), strings.Repeat("0123456789abcdef", 4)+"\n")
	}
	write(t, filepath.Join(dir, "app.pem"), appKey(t))
	text := inDocument(t, "docs/install.md", "\n## By hand\n")
	if strings.Count(text, "file:/etc/errand/") != 4 {
		t.Errorf("it names other files:\n%s", text)
	}
	none := func(string) (string, bool) { return "", false }
	c, err := config.Parse([]byte(strings.ReplaceAll(text, "/etc/errand", dir)), none)
	if err != nil {
		t.Fatalf("it cannot be used: %v", err)
	}
	if c.GitHub.AppID != 123456 || c.Trigger.Label != "errand" || c.Data != "/var/lib/errand" {
		t.Errorf("it is read as %+v", c)
	}
}

// TestExampleOfRepositorySettings: the example of an .errand.yml is valid.
func TestExampleOfRepositorySettings(t *testing.T) {
	t.Parallel()
	s, err := config.ParseRepo([]byte(inDocument(t, "docs/repository-settings.md", "")), operator(), nil)
	if err != nil || len(s.Check) != 3 || s.Gates.Coverage == 0 || !s.Key.Required {
		t.Errorf("settings %+v, %v", s, err)
	}
}
