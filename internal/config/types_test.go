package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/config"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want  time.Duration
		plain string // as FormatDuration writes it; empty: not a duration
	}{
		"90s":                     {90 * time.Second, "1m30s"},
		"330ms":                   {330 * time.Millisecond, "330ms"},
		"2h30m":                   {150 * time.Minute, "2h30m"},
		"120m":                    {2 * time.Hour, "2h"},
		"14d":                     {14 * 24 * time.Hour, "14d"},
		"1d12h":                   {36 * time.Hour, "1d12h"},
		"24h":                     {24 * time.Hour, "1d"},
		"0s":                      {0, "0s"},
		"0d":                      {0, "0s"},
		"":                        {},
		"5":                       {},
		"-5s":                     {},
		"1d-2h":                   {},
		"d":                       {},
		"1.5d":                    {},
		"2 h":                     {},
		"1h1d":                    {},
		"99999999999d":            {},
		"106751d":                 {106751 * 24 * time.Hour, "106751d"},
		"106752d":                 {},
		"106751d24h":              {},
		"9999999999999999999999h": {},
	}
	for text, tt := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := config.ParseDuration(text)
			if (err == nil) != (tt.plain != "") || got != tt.want {
				t.Fatalf("ParseDuration = %v, %v; want %v", got, err, tt.want)
			}
			if err == nil && config.FormatDuration(got) != tt.plain {
				t.Errorf("FormatDuration = %q, want %q", config.FormatDuration(got), tt.plain)
			}
		})
	}
}

// TestBackupProblems: backups that the operator wants have a folder, a time and a number that can be used.
func TestBackupProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		backup config.Backup
		want   string // empty: no problem
	}{
		"off":             {config.Backup{Every: 24 * time.Hour, Keep: 14}, ""},
		"on":              {config.Backup{Folder: "/var/backups/errand", Every: 10 * time.Minute, Keep: 1}, ""},
		"a relative path": {config.Backup{Folder: "backups", Every: time.Hour, Keep: 1}, "backup.folder"},
		"very often":      {config.Backup{Every: time.Minute, Keep: 1}, "backup.every"},
		"no time":         {config.Backup{Keep: 1}, "backup.every"},
		"none would stay": {config.Backup{Every: time.Hour}, "backup.keep"},
		"fewer than none": {config.Backup{Every: time.Hour, Keep: -1}, "backup.keep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			cfg.Backup = c.backup
			text := cfg.Validate().Error() // the default has no GitHub App
			if strings.Contains(text, "backup.") != (c.want != "") || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
