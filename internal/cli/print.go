package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/errand-bot/errand/internal/logview"
)

// PrintJSON prints JSON without characters that a terminal interprets.
func PrintJSON(w io.Writer, data []byte) error {
	_, err := w.Write(logview.PlainJSON(data))
	return err
}

// Minute formats a time in UTC.
func Minute(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// maxCell is the maximum width of a cell in a table with a head.
const maxCell = 100

// Table aligns rows of text. Without rows it prints nothing.
type Table struct {
	Rows int
	out  *tabwriter.Writer
	head []string
}

// NewTable returns a table that Flush writes to s.
func NewTable(s *strings.Builder, head ...string) *Table {
	return &Table{out: tabwriter.NewWriter(s, 0, 0, 2, ' ', 0), head: head}
}

// Row adds a row. A cell is printed on one line, even if it contains line breaks.
func (t *Table) Row(cells ...string) {
	if t.Rows == 0 && len(t.head) > 0 {
		_, _ = fmt.Fprintln(t.out, strings.Join(t.head, "\t")) // a strings.Builder has no errors
	}
	t.Rows++
	for i, c := range cells {
		cells[i] = logview.OneLine(c)
		if r := []rune(cells[i]); len(t.head) > 0 && len(r) > maxCell {
			cells[i] = string(r[:maxCell]) + "…"
		}
	}
	_, _ = fmt.Fprintln(t.out, strings.Join(cells, "\t"))
}

// Flush writes the table.
func (t *Table) Flush() { _ = t.out.Flush() }
