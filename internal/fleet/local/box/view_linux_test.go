package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJavaFiles: sandboxes see what Java and Maven need to start, and no settings that may have passwords.
func TestJavaFiles(t *testing.T) {
	t.Parallel()
	etc := t.TempDir()
	for _, name := range []string{
		"java-17-openjdk/jvm-amd64.cfg", "java-17-openjdk/net.properties", "java-17-openjdk/security/java.security", "java-17-openjdk/management/jmxremote.password",
		"maven/m2.conf", "maven/settings.xml", "maven/logging/simplelogger.properties", "passwd",
	} {
		path := filepath.Join(etc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range javaFiles(etc) {
		got = append(got, strings.TrimPrefix(path, etc+"/"))
	}
	want := []string{"java-17-openjdk/jvm-amd64.cfg", "java-17-openjdk/net.properties", "java-17-openjdk/security", "maven/m2.conf", "maven/logging"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
