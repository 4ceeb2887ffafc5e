package gates

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits on reports.
const (
	maxReport  = 32 << 20  // bytes of one
	maxReports = 100       // that match the patterns
	maxEntries = 1_000_000 // files and folders that are searched
	maxElement = 1 << 20   // bytes of a line or of an XML tag
)

// readReports reads all reports.
func (m *measurement) readReports(tree fs.FS) {
	names := m.findReports(tree)
	if m.failures[0] != "" {
		return
	}
	for _, name := range names {
		m.names = newNames(name)
		k, err := m.readReport(tree, name)
		m.read[k]++
		m.resolved[k] += m.names.resolved
		problem := m.problem()
		if err != nil {
			problem = fmt.Sprintf("The report %s cannot be used: %s.", quoted(name), err)
		}
		m.failures[k] = cmp.Or(m.failures[k], problem)
	}
}

// findReports returns the paths of the regular files that match the patterns and are not part of the commit.
func (m *measurement) findReports(tree fs.FS) (found []string) {
	entries := 0
	_ = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if m.late() {
			return fs.SkipAll
		}
		if entries++; entries > maxEntries {
			m.failures[0] = fmt.Sprintf("The checkout has too many files to search for reports: more than %d.", maxEntries)
			return fs.SkipAll
		}
		switch {
		case err != nil && name == ".":
			m.failures[0] = "The checkout cannot be searched for reports."
		case err != nil: // a folder that cannot be read has no report
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !m.matches(name):
		case m.files.tracked[name]:
			m.stale = append(m.stale, name)
		case !d.Type().IsRegular():
			m.irregular = append(m.irregular, name)
		case len(found) == maxReports:
			m.failures[0] = fmt.Sprintf("More than %d files match %s.", maxReports, listOf(m.patterns))
			return fs.SkipAll
		default:
			found = append(found, name)
		}
		return nil
	})
	return found
}

func (m *measurement) matches(name string) bool {
	for _, pattern := range m.patterns {
		if ok, err := doublestar.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// openRegular opens a file, but no link, folder or device.
func openRegular(tree fs.FS, name string) (fs.File, error) {
	if info, err := fs.Lstat(tree, name); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a regular file"))
	}
	return tree.Open(name)
}

// readReport reads one report, whose content tells its format. It returns the kind, 0 if that is unknown.
func (m *measurement) readReport(tree fs.FS, name string) (kind, error) {
	file, err := openRegular(tree, name)
	if err != nil {
		return 0, errors.New("it cannot be read")
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.Size() > maxReport {
		return 0, fmt.Errorf("it is larger than %d MiB", maxReport>>20)
	}
	return m.parse(timed{io.LimitReader(file, maxReport), m.late}, name)
}

// timed reads until the time is over.
type timed struct {
	io.Reader
	late func() bool
}

func (t timed) Read(p []byte) (int, error) {
	if t.late() {
		return 0, context.DeadlineExceeded
	}
	return t.Reader.Read(p)
}

// parse reads a report from the path name.
func (m *measurement) parse(r io.Reader, name string) (kind, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	skipMark(in)
	start, _ := in.Peek(len("mode: "))
	switch text := string(start); {
	case len(start) == 0:
		return 0, errors.New("it is empty")
	case text == "mode: ":
		return kindCoverage, m.parseGo(in, name)
	case strings.HasPrefix(text, "TN:"), strings.HasPrefix(text, "SF:"):
		return kindCoverage, m.parseLCOV(in, name)
	case strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<"):
		return m.parseXML(in, name)
	}
	return 0, errors.New("its format is none of LCOV, Cobertura, JaCoCo, Go cover profile and PIT")
}

// skipMark skips a byte order mark.
func skipMark(in *bufio.Reader) {
	if mark, err := in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
}

// sourceOf returns the path of a source file of Java within its source folder.
func sourceOf(pkg, file string) string { return path.Join(pkg, file) }
