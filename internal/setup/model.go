package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/gateway"
)

// subscribed reports whether a subscription pays for the model.
func (r *run) subscribed() bool {
	q := questionOf("model_auth")
	return q.applies(r) && r.answer(q.Key) == "subscription"
}

// askModel asks for the model, and tries its key by a request that costs nothing.
func (r *run) askModel(ctx context.Context) error {
	return r.askAndTry(ctx, "model", trial{"model_key", r.tryModel, "model_url and this host's network"})
}

// tryModel asks the provider of models whether it accepts a key.
func (r *run) tryModel(ctx context.Context, key string) error {
	section := fmt.Sprintf("key: env:%s", triedKey)
	if r.subscribed() {
		section = fmt.Sprintf("subscription: {token: env:%s}", triedKey)
	}
	name := registry.APIOf(r.answer("agent"))
	address, err := quoted(r.answer("model_url"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("models: {%s: {url: %s, %s}}\n", name, address, section)
	// The rest of the configuration is missing, so this returns an error.
	cfg, err := config.Parse([]byte(text), func(n string) (string, bool) { return key, n == triedKey })
	if m := cfg.Models[name]; m.Key.Reveal() == "" && m.Subscription.Token.Reveal() == "" {
		return fmt.Errorf("the model's section cannot be read: %w", err)
	}
	err = r.TryModels(ctx, cfg)[name]
	switch {
	case errors.As(err, new(gateway.UnclearError)):
		return outcomeError{err, errUnclear}
	case errors.Is(err, gateway.ErrKeyRefused):
		return outcomeError{err, errRefused}
	}
	return err
}

// triedKey stands for the key that is tried.
const triedKey = "ERRAND_SETUP_KEY"

// forgetDependent forgets the answers and secrets that belong to the earlier answer of a question, before that is replaced.
func (r *run) forgetDependent(q Question, value string) error {
	if value == cmp.Or(r.progress.Answers[q.Key], q.Default) {
		return nil
	}
	switch q.Key {
	case "agent":
		delete(r.progress.Answers, "model_url")
		delete(r.progress.Answers, "model_auth")
		return r.forgetKey()
	case "model_auth":
		return r.forgetKey()
	}
	return nil
}

// forgetKey makes the operator enter another key of the model, so that the earlier one is not sent to another provider, or as a key of
// another kind. The earlier one is kept in another file.
func (r *run) forgetKey() error {
	delete(r.held, "model_key")
	path := r.path(questionOf("model_key").file)
	old, err := r.oldName(path)
	if err == nil {
		err = os.Rename(path, old)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep the earlier key of the model: %w", err)
	}
	r.say("The earlier key of the model is now in %s.\n", old)
	return nil
}

// askVMs asks where agents work, and tries a token of Hetzner by requests that cost and create nothing.
func (r *run) askVMs(ctx context.Context) error {
	err := r.askAndTry(ctx, "vms", trial{"hetzner_token", r.tryVMs, "status.hetzner.com and this host's network"})
	switch {
	case err != nil:
		return err
	case questionOf("hetzner_token").applies(r):
		r.say("No VM was created. docs/hetzner.md has further settings.\n")
	default:
		r.say("Sandboxes need bubblewrap or user namespaces on this host, and the agent's program unless the agent is api. This is checked at the end.\n")
	}
	return nil
}

// tryVMs asks Hetzner whether it accepts a token.
func (r *run) tryVMs(ctx context.Context, token string) error {
	problem, err := r.TryVMs(ctx, token)
	switch {
	case errors.Is(err, fleet.ErrUnknownOutcome), errors.Is(err, fleet.ErrLimited):
		return outcomeError{err, errUnclear}
	case err != nil:
		return err
	case problem != "":
		return outcomeError{fmt.Errorf("%s Create a token with read and write permission in the project's security settings at Hetzner", problem), errRefused}
	}
	return nil
}

// An outcomeError is an error for people, of a kind: errRefused or errUnclear.
type outcomeError struct {
	error
	kind error
}

func (e outcomeError) Unwrap() error { return e.kind }
