package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// axeDir is where axe is kept between runs; git ignores it.
const axeDir = "../../.cache/axe"

// axeSource is axe-core at the version, and with the checksum, that testdata/axe/package-lock.json says.
// npm installs it where it is not there yet. Without npm it is empty, unless npm is required.
func axeSource(t *testing.T) string {
	t.Helper()
	if err := installAxe(); err != nil {
		if os.Getenv("ERRAND_REQUIRE_NPM") != "" {
			t.Fatal(err)
		}
		t.Run("axe", func(t *testing.T) { t.Skipf("pages are not held against axe: %v", err) })
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
		return fmt.Errorf("make the cache folder: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(axeDir), "axe-")
	if err != nil {
		return fmt.Errorf("make a folder for axe: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it has moved, or is of no use
	if err := os.CopyFS(dir, os.DirFS("testdata/axe")); err != nil {
		return fmt.Errorf("copy what npm has to install: %w", err)
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
