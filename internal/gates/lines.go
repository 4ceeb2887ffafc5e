package gates

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/tools/cover"
)

// parseLCOV reads the records of an LCOV file: SF names a file, DA a line and how often it ran.
func (m *measurement) parseLCOV(r io.Reader, report string) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxElement)
	file, open, changed := "", false, false
	n := 0
	for in.Scan() {
		n++
		key, value, _ := strings.Cut(strings.TrimRight(in.Text(), "\r"), ":")
		switch {
		case key == "SF":
			if open {
				return fmt.Errorf("line %d begins a file before the last one ended", n)
			}
			file, changed = m.resolve(value, func() match { return m.files.find(value, nil, report) })
			open = true
		case key == "end_of_record":
			open = false
		case key == "DA" && !open:
			return fmt.Errorf("line %d belongs to no file", n)
		case key == "DA":
			parts := strings.SplitN(value, ",", 3)
			if len(parts) < 2 {
				return fmt.Errorf("line %d has no number of runs", n)
			}
			line, covered, err := lineAndHits(parts[0], parts[1])
			if err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			if changed {
				m.mark(file, line, covered)
			}
		}
	}
	switch {
	case errors.Is(in.Err(), bufio.ErrTooLong):
		return fmt.Errorf("line %d is longer than %d KiB", n+1, maxElement>>10)
	case in.Err() != nil:
		return errors.New("it cannot be read to its end")
	case open:
		return errors.New("it ends within a record")
	}
	return nil
}

// lineAndHits reads the number of a line, and whether it ran.
func lineAndHits(number, hits string) (line int, covered bool, err error) {
	if line, err = strconv.Atoi(number); err != nil {
		return 0, false, fmt.Errorf("%s is not the number of a line", literal(number))
	}
	count, err := strconv.ParseFloat(hits, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%s is not a number of runs", literal(hits))
	}
	return line, count > 0, nil
}

// parseGo reads a Go cover profile. It lists blocks of statements; a changed line counts if a block includes it, and is
// covered if one of these blocks ran. Lines without a statement do not count.
func (m *measurement) parseGo(r io.Reader, report string) error {
	profiles, err := cover.ParseProfilesFromReader(r)
	if errors.Is(err, bufio.ErrTooLong) {
		return errors.New("it has a line that is too long")
	} else if err != nil {
		return errors.New(plain(err.Error()))
	}
	for _, p := range profiles {
		file, changed := m.resolve(p.FileName, func() match { return m.files.goFile(p.FileName, report) })
		if changed {
			m.markBlocks(file, p.Blocks)
		}
	}
	return nil
}

// markBlocks marks the changed lines of a file that are in blocks. Its time grows with lines and blocks, not their product.
func (m *measurement) markBlocks(file string, blocks []cover.ProfileBlock) {
	lines := m.changed[file]
	within, ran := make([]int, len(lines.numbers)+1), make([]int, len(lines.numbers)+1)
	for _, b := range blocks {
		first := sort.SearchInts(lines.numbers, b.StartLine)
		last := sort.Search(len(lines.numbers), func(i int) bool { return lines.numbers[i] > b.EndLine })
		if first >= last || b.NumStmt == 0 {
			continue
		}
		within[first]++
		within[last]--
		if b.Count != 0 {
			ran[first]++
			ran[last]--
		}
	}
	inside, covered := 0, 0
	for i := range lines.numbers {
		inside, covered = inside+within[i], covered+ran[i]
		if inside > 0 && !lines.bare[i] {
			m.markAt(file, i, covered > 0)
		}
	}
}
