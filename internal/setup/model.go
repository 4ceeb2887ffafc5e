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
	"github.com/errand-bot/errand/internal/gateway"
)

// subscribed reports whether a subscription pays for the model.
func (r *run) subscribed() bool {
	q := questionOf("model_auth")
	return q.applies(r) && r.answer(q.Key) == "subscription"
}

// askModel asks for the model, tries its key by a request that costs nothing, and stores it. A refused key can be entered again.
func (r *run) askModel(ctx context.Context) error {
	q := questionOf("model_key")
	keys := []string{"agent", "model_url", "model_auth", q.Key}
	for range maxTries {
		if err := r.askAll(ctx, keys...); err != nil {
			return err
		}
		key, err := r.secret(q)
		if err != nil {
			return err
		}
		err = r.tryModel(ctx, key)
		_, given := r.given[q.Key]
		var unclear gateway.UnclearError
		switch {
		case err == nil:
			r.say("The provider accepts it.\n")
			return r.storeAnswer(q, key)
		case errors.As(err, &unclear):
			r.say("Not checked: %v.\n", err)
			return r.storeAnswer(q, key)
		case !errors.Is(err, gateway.ErrKeyRefused):
			return fmt.Errorf("try the model's key: %w: check model_url and this host's network, and %s", err, r.front.again())
		case q.kept(r):
			return fmt.Errorf("%w: write another one to %s, or delete that file and %s", err, r.path(q.file), r.front.again())
		case given || !r.front.interactive():
			return fmt.Errorf("%w: correct model_key", err)
		}
		r.refuse(q, err)
		keys = []string{q.Key}
	}
	return errors.New("no accepted key was entered")
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
	return r.TryModels(ctx, cfg)[name]
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

func (r *run) askVMs(ctx context.Context) error {
	// The token is the last answer, because it is stored after the form: an interruption before that would lose it.
	if err := r.askAll(ctx, "vms", "agent_program", "hetzner_token"); err != nil {
		return err
	}
	q := questionOf("hetzner_token")
	if !q.applies(r) {
		r.say("Sandboxes need bubblewrap on this host, and the agent's program unless the agent is api. This is checked at the end.\n")
		return nil
	}
	r.say("The token is checked with everything else at the end, without creating a VM. docs/hetzner.md has further settings.\n")
	token, err := r.secret(q)
	if err != nil {
		return err
	}
	return r.storeAnswer(q, token)
}
