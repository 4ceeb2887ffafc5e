package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// axeDir keeps axe between runs; git ignores it.
const axeDir = "../../.cache/axe"

// axeSource returns the source of axe-core in the version, and with the checksum, of testdata/axe/package-lock.json.
// npm installs it if it is missing. Without npm the source is empty, unless npm is required.
func axeSource(t *testing.T) string {
	t.Helper()
	if err := installAxe(); err != nil {
		if os.Getenv("ERRAND_REQUIRE_NPM") != "" {
			t.Fatal(err)
		}
		t.Run("axe", func(t *testing.T) { t.Skipf("pages are not checked with axe: %v", err) })
		return ""
	}
	src, err := os.ReadFile(filepath.Join(axeDir, "node_modules/axe-core/axe.min.js"))
	check(t, err)
	return string(src)
}

func installAxe() (err error) {
	const lock = "package-lock.json"
	want, err := os.ReadFile(filepath.Join("testdata/axe", lock))
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(filepath.Join(axeDir, lock)); err == nil && bytes.Equal(have, want) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(axeDir), 0o755); err != nil {
		return fmt.Errorf("make cache directory: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(axeDir), "axe-")
	if err != nil {
		return fmt.Errorf("make directory for axe: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it was renamed, or is not needed
	if err := os.CopyFS(dir, os.DirFS("testdata/axe")); err != nil {
		return fmt.Errorf("copy package files: %w", err)
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install axe with npm: %w\n%s", err, out)
	}
	if err := os.RemoveAll(axeDir); err != nil {
		return fmt.Errorf("remove the old axe: %w", err)
	}
	return os.Rename(dir, axeDir)
}
