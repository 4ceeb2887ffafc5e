package config

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/errand-bot/errand/internal/secretscan"
)

// TestEnv sets variables, by repository, for its setup, agents and checks. Everybody who directs an agent can read them,
// so their loss must do no harm, as with the password of a test's own database.
type TestEnv map[string]map[string]Secret

// TestFiles puts files, by repository, into its checkout for setup, agents and checks. The same caution applies as for
// TestEnv.
type TestFiles map[string]map[string]Secret

// The limits on test files and variables.
const (
	maxTestFiles = 20
	maxTestPath  = 200
)

// testPath matches paths that need no quoting anywhere.
var testPath = regexp.MustCompile(`^[A-Za-z0-9._@+/-]+$`)

// resolve reads all values. A value that is neither env:NAME nor file:/path is used as it is.
func (t TestEnv) resolve(r *report, env func(string) (string, bool)) {
	eachSecret(t, func(repo, name string, s *Secret) {
		if strings.HasPrefix(s.from, "env:") || strings.HasPrefix(s.from, "file:") {
			r.fail("test_env."+repo+"."+name, s.resolve(env, false))
			return
		}
		plain := strings.TrimPrefix(s.from, "value:")
		s.value = &plain
	})
}

// resolve reads all files without any change.
func (t TestFiles) resolve(r *report, env func(string) (string, bool), standIns bool) {
	eachSecret(t, func(repo, name string, s *Secret) {
		key := "test_files." + repo + "." + name
		source, ok := strings.CutPrefix(s.from, "file:")
		if !ok {
			r.fail(key, s.resolve(env, standIns))
			return
		}
		text, err := readWhole(source)
		if err != nil {
			r.unless(false, key, "%s; write the path of a file that errand can read", err)
			return
		}
		s.value = &text
	})
}

// eachSecret calls do for every value in order and stores the result.
func eachSecret(all map[string]map[string]Secret, do func(repo, name string, s *Secret)) {
	for _, repo := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[repo])) {
			s := all[repo][name]
			do(repo, name, &s)
			all[repo][name] = s
		}
	}
}

func (t TestEnv) problems(r *report) {
	for _, repo := range slices.Sorted(maps.Keys(t)) {
		key := "test_env." + repo
		r.unless(isPattern(repo), key, "%q: write OWNER/REPO", cut(repo))
		variableProblems(r, key, t[repo])
	}
	eachSecret(t, func(repo, name string, s *Secret) {
		key, v := "test_env."+repo+"."+name, s.Reveal()
		r.unless(s.Set(), key, "write env:NAME, file:/path, or the value")
		r.unless(v == "" || len(v) >= secretscan.MinKnown, key, "a value of fewer than %d characters cannot be redacted reliably; make it longer, or let the repository set it under env in its .errand.yml", secretscan.MinKnown)
		r.unless(!strings.Contains(v, "\x00") && len(v) <= maxSecret, key, "the value is longer than %d bytes or contains a NUL; use test_files for it", maxSecret)
	})
}

func (t TestFiles) problems(r *report) {
	for _, repo := range slices.Sorted(maps.Keys(t)) {
		key := "test_files." + repo
		r.unless(isPattern(repo), key, "%q: write OWNER/REPO", cut(repo))
		r.unless(len(t[repo]) <= maxTestFiles, key, "%d files are too many; write at most %d", len(t[repo]), maxTestFiles)
	}
	eachSecret(t, func(repo, name string, s *Secret) {
		key := "test_files." + repo + "." + name
		r.unless(s.Set(), key, "write where errand finds the file: file:/path or env:NAME")
		r.unless(isTestPath(name), key, "%q: write a plain path within the checkout, such as config/test.key, of letters, digits and . _ @ + - /", cut(name))
	})
}

// isTestPath reports whether a path is a file of the checkout and not of git.
func isTestPath(p string) bool {
	git := slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.HasPrefix(strings.ToLower(part), ".git") })
	return testPath.MatchString(p) && len(p) <= maxTestPath && filepath.IsLocal(p) && path.Clean(p) == p && p != "." &&
		!strings.HasPrefix(p, "-") && !git
}

func isPattern(repo string) bool { return fullName.MatchString(strings.ReplaceAll(repo, "*", "x")) }

// For returns the variables of a repository, named as OWNER/NAME. An exact name takes precedence over a pattern.
func (t TestEnv) For(repo string) map[string]string { return secretsFor(t, repo) }

// For returns the contents of a repository's test files by path, likewise.
func (t TestFiles) For(repo string) map[string]string { return secretsFor(t, repo) }

func secretsFor(all map[string]map[string]Secret, repo string) map[string]string {
	out := map[string]string{}
	for _, stars := range []bool{true, false} {
		for _, pattern := range slices.Sorted(maps.Keys(all)) {
			if strings.Contains(pattern, "*") != stars || !matches(pattern, repo) {
				continue
			}
			for name, s := range all[pattern] {
				out[name] = s.Reveal()
			}
		}
	}
	return out
}

// testSecrets returns all texts to redact in variables and files for tests.
func (c Config) testSecrets() []string {
	var out []string
	eachSecret(c.TestEnv, func(_, _ string, s *Secret) { out = append(out, s.Reveal()) })
	eachSecret(c.TestFiles, func(_, _ string, s *Secret) { out = append(out, partsToRedact(s.Reveal())...) })
	return out
}

// minRedacted is the minimum length of a word in a file that is treated as a secret.
const minRedacted = 12

// partsToRedact returns the parts of a file to redact: all of it if it is one line, else the words with both letters and
// digits, such as keys and passwords. Redacting every word would redact most ordinary text.
func partsToRedact(content string) []string {
	if text := strings.TrimSpace(content); !strings.Contains(text, "\n") {
		return append(words(text), text)
	}
	return words(content)
}

func words(content string) []string {
	split := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'`+"`"+`,;=<>(){}[]`, r) }
	return slices.DeleteFunc(strings.FieldsFunc(content, split), func(w string) bool {
		address := strings.Contains(w, "://") && !strings.Contains(w, "@")
		return len(w) < minRedacted || address || !strings.ContainsFunc(w, unicode.IsLetter) || !strings.ContainsFunc(w, unicode.IsDigit)
	})
}

// readWhole reads a file without any change.
func readWhole(name string) (string, error) {
	data, err := readBounded(name)
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s is empty", name)
	}
	return string(data), err
}
