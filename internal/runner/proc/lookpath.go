package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// lookPath finds the command's file in the PATH of the command's own environment.
func lookPath(c Command) (string, error) {
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(c.Dir, name)
		}
		return name, executable(name)
	}
	for _, dir := range filepath.SplitList(variable(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %q in PATH: %w", name, os.ErrNotExist)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("run %s: %w", path, os.ErrPermission)
	}
	return nil
}

// variable returns the last value of an environment variable, which is the effective one.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
