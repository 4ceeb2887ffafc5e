package archive

import (
	"os"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// summarySuffix ends the names of the files with task summaries; internal/logview reads them.
const summarySuffix = ".summary.json"

// SaveSummary stores a redacted task summary next to the task's transcripts and replaces the earlier one. It is pruned
// with the transcripts.
func (d *Dir) SaveSummary(name string, data []byte) error {
	path, err := d.file("transcripts", name, summarySuffix)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, []byte(d.clean(string(data))), 0o600)
}

// SummaryTime returns the time at which a summary was last stored, zero if there is none.
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
