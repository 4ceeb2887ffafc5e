package gateway

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
)

// TestConcurrentStreamsAreEndedAtACap: streams that reach a cap together exceed it by at most what each receives between two
// checks.
func TestConcurrentStreamsAreEndedAtACap(t *testing.T) {
	t.Parallel()
	const most = 40_000
	model := endless(t, modelapi.OpenAI, chatPath, "\n")
	b := &books{task: *someTask()}
	b.task.Money.CapTokens = most
	w := newEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"m": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.OpenAI}}
		c.Tasks, c.Ledger, c.Prices, c.QueueTimeout = b, b, modelapi.Prices{"claude-x": {Input: 1, Output: 1}}, time.Millisecond
	})
	var mu sync.Mutex
	var all sync.WaitGroup
	passed := 0
	for range 20 {
		all.Go(func() {
			status, _ := askFor(t, http.DefaultClient, http.MethodPost, w.url+"/llm/m"+chatPath, streamed, bearer(runToken))
			if status == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
		})
	}
	all.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if spent := b.task.Money.Tokens(); passed == 0 || spent < most || spent > most+int64(passed)*4200 {
		t.Errorf("%d streams used %d tokens", passed, spent)
	}
}
