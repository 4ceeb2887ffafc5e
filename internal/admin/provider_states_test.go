package admin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
)

// TestUnavailableProviders: the board and the metrics show unavailable providers and no others.
func TestUnavailableProviders(t *testing.T) {
	t.Parallel()
	known := map[string]state.ProviderState{
		"anthropic": {Kind: state.WaitKey, Detail: "the provider <anthropic> refuses errand's key", Hint: "Set another.", Since: noon.Add(-time.Hour), Until: noon.Add(time.Minute)},
		"openai":    {Kind: state.WaitLimit, Detail: "its limit was used up", Since: noon.Add(-time.Hour), Until: noon.Add(-time.Minute)},
	}
	var err error
	url := serve(t, admin.Config{
		Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon },
		Providers: func(context.Context) (map[string]state.ProviderState, error) { return known, err },
	})
	_, body := fetch(t, url+"/metrics", nil)
	wantLines(t, body, `errand_model_trouble{kind="key",provider="anthropic"} 1`)
	wantNot(t, body, `provider="openai"`)
	_, body = fetch(t, url+"/status.json", nil)
	want(t, body, `"provider": "anthropic"`, `"kind": "key"`)
	wantNot(t, body, "openai")
	_, body = fetch(t, url+"/status", map[string]string{"Accept": "text/html"})
	want(t, body, "Unavailable model providers", "The provider &lt;anthropic&gt; refuses errand", "Set another.")
	wantNot(t, body, "openai")
	delete(known, "anthropic")
	_, body = fetch(t, url+"/status", map[string]string{"Accept": "text/html"})
	wantNot(t, body, "Unavailable model providers")
	err = errors.New("no disk")
	if status, _ := fetch(t, url+"/status", nil); status != 500 {
		t.Errorf("got status %d although the state of providers cannot be read", status)
	}
}
