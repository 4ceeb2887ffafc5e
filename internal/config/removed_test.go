package config_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

// TestRemovedKeysNameTheirReplacement: a file with a key of an earlier version is refused with the line, the key and
// its replacement.
func TestRemovedKeysNameTheirReplacement(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ value, want string }{
		"agent.max_turns":        {"60", "this key was replaced; write limits.turns instead"},
		"repository.protected":   {"[a]", "this key was replaced; write gate.protected, and exceptions in gate.unprotected, instead"},
		"timing.status_gap":      {"10s", "errand keeps to the pace that GitHub asks of Apps"},
		"timing.settle":          {"30s", "how long a revision must exist before an approval without its hash counts"},
		"timing.backoff":         {"1m", "errand retries an interrupted task after a minute, then after twice as long each time"},
		"timing.backoff_max":     {"1h", "errand retries an interrupted task after a minute, then after twice as long each time"},
		"timing.recheck":         {"1m", "how often a waiting task checks whether it can continue"},
		"timing.poll_gap":        {"2s", "timing.poll_fast and timing.poll_slow set how often reactions are read"},
		"timing.progress":        {"5s", "how often the progress of a run is stored"},
		"timing.retry":           {"2s", "when a failed job is retried"},
		"timing.reap_grace":      {"15m", "how long a VM without a task is kept"},
		"timing.writes_burst":    {"20", "errand keeps to the pace that GitHub asks of Apps"},
		"timing.writes_every":    {"1s", "errand keeps to the pace that GitHub asks of Apps"},
		"timing.objects_every":   {"330ms", "errand keeps to the pace that GitHub asks of Apps"},
		"timing.max_attempts":    {"5", "at most five times in a row; limits.cost and limits.vm_hours bound what that may cost"},
		"timing.unreachable_for": {"10m", "when an unreachable VM counts as lost"},
		"timing.answer":          {"30s", "how long it waits for an answer of GitHub"},
		"timing.sleep_before":    {"5m", "shortly before its paid time (hetzner.billing_period) ends"},
		"timing.vm_tick":         {"5s", "how often it checks VMs that are being created"},
		"timing.gone_after":      {"1h", "timing.sweep sets how often issues are checked"},
	}
	for key, tt := range tests {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			section, name, _ := strings.Cut(key, ".")
			_, err := config.Parse([]byte("enabled: true\n"+section+":\n  "+name+": "+tt.value+"\n"), env(t))
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "line 3: "+key+": this key ") || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want one line with %q", err, tt.want)
			}
			if strings.HasPrefix(key, "timing.") && !strings.HasSuffix(err.Error(), ". Delete the line") {
				t.Errorf("does not say what to do: %v", err)
			}
		})
	}
}

// TestRemovedKeyOfAnEntry: the same for a key of a named entry.
func TestRemovedKeyOfAnEntry(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"anthropic", "mine"} {
		_, err := config.Parse([]byte("models:\n  "+name+": {url: 'https://m', subscription: {login: /l, client_id: x}}\n"), env(t))
		want := "line 2: models." + name + ".subscription.client_id: this key was removed: errand renews a login as Claude Code, for which the login was created. Delete the line"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestRemovedKeyOfARepositorysFile: the same for a repository's own file.
func TestRemovedKeyOfARepositorysFile(t *testing.T) {
	t.Parallel()
	_, err := config.ParseRepo([]byte("protected: [a]\n"), operator(), nil)
	if want := "line 1: protected: this key was replaced; write gate.protected instead"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
