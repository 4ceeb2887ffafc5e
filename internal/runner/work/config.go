package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// settings returns the configuration that the workspace must have, by key.
func (spec PrepareSpec) settings() map[string]string {
	all := map[string]string{
		"user.name":         orText(spec.UserName, "errand"),
		"user.email":        orText(spec.UserEmail, "errand@localhost"),
		"remote.origin.url": spec.URL,
		"push.default":      "nothing",
		"gc.auto":           "0",
	}
	maps.Copy(all, spec.Config)
	return all
}

// extendConfig appends settings to the configuration file of a new repository, because git would need a process for
// each. It leaves out those that it cannot write, which configure sets. Like git, it replaces the file by its lock, so
// the file is complete after any crash.
func (r *repo) extendConfig(settings map[string]string) error {
	path := filepath.Join(r.dir, ".git", "config")
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	present, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	text := strings.Builder{}
	text.Write(present)
	if !strings.HasSuffix(text.String(), "\n") {
		text.WriteString("\n")
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		text.WriteString(configText(key, settings[key]))
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = lock.WriteString(text.String())
	if err = errors.Join(err, lock.Close()); err == nil {
		err = os.Rename(path+".lock", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".lock"))
	}
	return nil
}

// configText returns a setting as git writes it, with a section of its own, or "" if it cannot be written.
func configText(key, value string) string {
	section, rest, _ := strings.Cut(key, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	part := strings.TrimSuffix(strings.TrimSuffix(rest, name), ".")
	if !isConfigName(section) || !isConfigName(name) || strings.ContainsAny(part, "\n\x00") || strings.Contains(value, "\x00") {
		return ""
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace
	if rest != name {
		part = ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(part) + `"`
	}
	return fmt.Sprintf("[%s%s]\n\t%s = \"%s\"\n", section, part, name, quote(value))
}

// isConfigName reports whether text can be the name of a section or a variable.
func isConfigName(text string) bool {
	isLetter := func(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	invalid := func(c rune) bool { return !isLetter(c) && !('0' <= c && c <= '9') && c != '-' }
	return text != "" && isLetter(rune(text[0])) && !strings.ContainsFunc(text, invalid)
}

// configure sets the values that differ.
func (r *repo) configure(ctx context.Context, settings map[string]string) error {
	present := r.settings(ctx)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if slices.Equal(present[key], []string{settings[key]}) {
			continue
		}
		if _, err := r.run(ctx, "config", "--local", "--replace-all", key, settings[key]); err != nil {
			return fmt.Errorf("configure %s: %w", key, err)
		}
	}
	return nil
}

// settings returns all values of the repository's own configuration by key, or nil if git cannot read it.
func (r *repo) settings(ctx context.Context) map[string][]string {
	out, err := r.run(ctx, "config", "--local", "--no-includes", "--list", "-z")
	if err != nil {
		return nil // setting a value reports the error
	}
	all := map[string][]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			all[key] = append(all[key], value)
		}
	}
	return all
}
