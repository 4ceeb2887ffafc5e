package setup

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/errand-bot/errand/internal/durable"
)

// maxSecret is the maximum size of a secret, in bytes.
const maxSecret = 64 << 10

// reveal returns the secret that an answer names: env:NAME or file:/path. Somebody who is asked can enter the secret itself.
func (r *run) reveal(answer string) (string, error) {
	kind, rest, _ := strings.Cut(answer, ":")
	var value string
	switch {
	case kind == "env":
		value, _ = r.Lookup(rest)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", rest)
		}
	case kind == "file":
		data, err := readBounded(rest, maxSecret)
		if err != nil {
			return "", err
		}
		value = string(data)
	case r.front.interactive():
		value = answer
	default:
		return "", errPlain
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", errors.New("the secret is empty")
	}
	return value, nil
}

// errPlain refuses secrets in a file with answers.
var errPlain = errors.New("write env:NAME or file:/path, so that the file with the answers contains no secrets")

// isPlain reports whether an answer is a secret itself instead of its name.
func isPlain(answer string) bool {
	return answer != "" && !strings.HasPrefix(answer, "env:") && !strings.HasPrefix(answer, "file:")
}

// secret returns the answer to the question for a secret: from the file, as it was entered, or as it is stored.
func (r *run) secret(q Question) (string, error) {
	answer, known := r.given[q.Key]
	if known && isPlain(answer) {
		return "", fmt.Errorf("%s: %w", q.Key, errPlain)
	}
	if !known {
		answer, known = r.held[q.Key]
	}
	if !known && q.kept(r) {
		answer = "file:" + r.path(q.file)
	}
	value, err := r.reveal(answer)
	if err != nil {
		return "", fmt.Errorf("%s: %w", q.Key, err)
	}
	return value, nil
}

// sayKept says that a stored secret or the App's address of GitHub is used.
func (r *run) sayKept(q Question) {
	_, given := r.given[q.Key]
	switch {
	case given:
	case q.kept(r):
		r.say("%s: %s is kept.\n", q.Text, r.path(q.file))
	case q.fixed(r):
		r.say("%s: %s is kept, because the App exists there.\n", q.Text, r.answer(q.Key))
	}
}

// storeAnswer stores the answer to the question for a secret. From then on its file has it, which the operator may correct.
func (r *run) storeAnswer(q Question, value string) error {
	if err := r.storeSecret(q.file, value); err != nil {
		return err
	}
	delete(r.held, q.Key)
	return nil
}

// storeSecret writes a file with a secret. It never replaces another secret, unless the setup was started with --force.
func (r *run) storeSecret(name, value string) error {
	path := r.path(name)
	old, err := readBounded(path, maxSecret)
	switch {
	case err == nil && bytes.Equal(bytes.TrimSpace(old), []byte(strings.TrimSpace(value))):
		return nil
	case err == nil && !r.opts.Force:
		return fmt.Errorf("%s exists with another secret: move it away, or replace it with --force", path)
	case err == nil:
		if err := r.keepOld(path, 0o600); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", path, err)
	}
	return durable.WriteFile(path, []byte(value+"\n"), 0o600)
}

// makeSecret creates a random secret, unless the file has one.
func (r *run) makeSecret(name string) error {
	if _, err := os.Stat(r.path(name)); err == nil {
		return nil
	}
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("create a secret: %w", err)
	}
	return r.storeSecret(name, hex.EncodeToString(b[:]))
}
