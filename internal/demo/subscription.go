package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// Ways to use the model on a subscription, for Config.Subscription.
const (
	ByLogin = "login" // a renewable login
	ByToken = "token" // a long-lived token
)

// anthropic returns the model's authentication settings in errand's configuration.
func (w *World) anthropic(secrets string) (string, error) {
	path := filepath.Join(secrets, "subscription")
	file, err := inline(path)
	if err != nil {
		return "", err
	}
	switch w.cfg.Subscription {
	case "":
		key, err := inline("file:" + filepath.Join(secrets, "model"))
		return fmt.Sprintf("key: %s, header: X-Api-Key", key), err
	case ByToken:
		if file, err = inline("file:" + path); err != nil {
			return "", err
		}
		token := w.Model.Subscribe(365 * 24 * time.Hour).Access
		return fmt.Sprintf("subscription: {token: %s}", file), os.WriteFile(path, []byte(token+"\n"), 0o600)
	case ByLogin:
		return fmt.Sprintf("subscription: {login: %s, renew_url: %s/v1/oauth/token}", file, w.addr), w.LogIn()
	}
	return "", fmt.Errorf("there is no subscription by %q", w.cfg.Subscription)
}

// LogIn creates a new login at the model's provider and stores it for errand, as an operator does.
func (w *World) LogIn() error {
	l := w.Model.Subscribe(8 * time.Hour)
	data, err := json.Marshal(map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": l.Access, "refreshToken": l.Refresh, "expiresAt": l.Ends.UnixMilli(), "scopes": []string{"user:inference"}, "subscriptionType": "max",
	}})
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(w.cfg.Dir, "secrets", "subscription"), data, 0o600)
}
