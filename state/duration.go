package state

import (
	"fmt"
	"strings"
	"time"
)

// DurationText formats a limit or an exact duration for people, in hours, minutes and seconds without those that are
// zero: "3 h", "1 h 30 min", "45 s". Package internal/words formats durations that are measured, and
// package internal/config those of the configuration.
func DurationText(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		size   time.Duration
		format string
	}{{time.Hour, "%d h"}, {time.Minute, "%d min"}, {time.Second, "%d s"}} {
		if n := d / unit.size; n != 0 {
			parts = append(parts, fmt.Sprintf(unit.format, n))
			d %= unit.size
		}
	}
	if len(parts) == 0 {
		return "0 s"
	}
	return strings.Join(parts, " ")
}
