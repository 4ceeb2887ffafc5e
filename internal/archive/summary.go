package archive

import (
	"os"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// summarySuffix ends the names of files that sum a task up; internal/logview reads them.
const summarySuffix = ".summary.json"

// SaveSummary stores what sums a task up beside its transcripts, in the place of what was there, and without secrets.
// It is kept as long as they are.
func (d *Dir) SaveSummary(name string, data []byte) error {
	path, err := d.file("transcripts", name, summarySuffix)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, []byte(d.clean(string(data))), 0o600)
}

// SummaryTime is when it was stored last, zero if it is not there.
func (d *Dir) SummaryTime(name string) time.Time {
	path, err := d.file("transcripts", name, summarySuffix)
	if err != nil {
		return time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
