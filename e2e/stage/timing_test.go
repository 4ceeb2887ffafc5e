package stage_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/stage"
	"github.com/errand-bot/errand/internal/server"
)

func TestSetTiming(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key, value string
		known      bool
		fails      bool
		got        func(server.Timing) any
		want       any
	}{
		"a duration":   {"gone_after", "1s", true, false, func(t server.Timing) any { return t.GoneAfter }, time.Second},
		"an acronym":   {"github_timeout", "2s", true, false, func(t server.Timing) any { return t.GitHubTimeout }, 2 * time.Second},
		"a number":     {"max_attempts", "7", true, false, func(t server.Timing) any { return t.MaxAttempts }, 7},
		"no duration":  {"backoff", "soon", true, true, nil, nil},
		"no number":    {"writes_burst", "1s", true, true, nil, nil},
		"no such name": {"gather", "1s", false, false, nil, nil},
		"Go's name":    {"GoneAfter", "1s", false, false, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timing := server.DefaultTiming()
			known, err := stage.SetTiming(&timing, tt.key, tt.value)
			if known != tt.known || (err != nil) != tt.fails {
				t.Fatalf("got known %t, error %v", known, err)
			}
			if tt.got != nil && tt.got(timing) != tt.want {
				t.Errorf("got %v, want %v", tt.got(timing), tt.want)
			}
			if tt.got == nil && timing != server.DefaultTiming() && !tt.fails {
				t.Errorf("got timing %+v", timing)
			}
		})
	}
}
