package provenance

import (
	"context"
	"crypto/ed25519"
	"strings"

	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/state"
)

// Signer makes the statements of a deployment.
type Signer struct {
	// Key returns the deployment's key as it is now: it may be replaced while errand works.
	Key     func() (keyfile.Signing, error)
	Version string
	// PublicURL is errand's public address, empty if it has none.
	PublicURL string
	Redact    func(string) string
}

// Statement is a signed statement.
type Statement struct {
	Envelope []byte   // one line of JSON
	Summary  []string // its content in words
}

// State returns the statement about the publications of a task with a pull request.
func (s *Signer) State(ctx context.Context, t *state.Task) (Statement, error) {
	k, err := s.Key()
	if err != nil {
		return Statement{}, err
	}
	keys := ""
	if s.PublicURL != "" {
		keys = strings.TrimSuffix(s.PublicURL, "/") + KeysPath
	}
	public, _ := k.Private.Public().(ed25519.PublicKey)
	d, err := Describe(s.Version, keys, public)
	if err != nil {
		return Statement{}, err
	}
	p := Build(t, d, s.Redact)
	envelope, err := Sign(ctx, p, k.Private)
	if err != nil {
		return Statement{}, err
	}
	return Statement{Envelope: envelope, Summary: p.Summary()}, nil
}
