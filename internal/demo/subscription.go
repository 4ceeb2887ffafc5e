package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// How errand may ask the model on a subscription, for Config.Subscription.
const (
	ByLogin = "login" // which is renewed
	ByToken = "token" // which lives for long
)

// anthropic is what errand's configuration says of how the model is asked.
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

// LogIn makes a new login at the model's provider, and puts it where errand looks for it, as its operator does.
func (w *World) LogIn() error {
	l := w.Model.Subscribe(8 * time.Hour)
	data, err := json.Marshal(map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": l.Access, "refreshToken": l.Refresh, "expiresAt": l.Ends.UnixMilli(), "scopes": []string{"user:inference"}, "subscriptionType": "max",
	}})
	if err != nil {
		return err
	}
	path := filepath.Join(w.cfg.Dir, "secrets", "subscription")
	if err := os.WriteFile(path+".mine", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".mine", path)
}
