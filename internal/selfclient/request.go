package selfclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
)

// ErrNotRunning means that no connection to errand's address was made.
var ErrNotRunning = errors.New("errand cannot be reached")

// ErrNoAnswer means that a request was perhaps sent, but not answered in whole.
var ErrNoAnswer = errors.New("no answer from errand")

// MaxAnswer is the maximum length of errand's answer, in bytes.
const MaxAnswer = 16 << 20

// An Answer is the answer of the running errand.
type Answer struct {
	Address string
	Status  int
	Body    []byte
	Named   bool // the header has errand's name
	token   bool // a token was sent
}

// Text returns the answer without surrounding white space.
func (a Answer) Text() string { return strings.TrimSpace(string(a.Body)) }

// ErrWrongToken means that errand did not accept the token, or that none was sent.
var ErrWrongToken = errors.New("errand refuses the request")

// Unexpected returns the error for an answer that the command does not expect, with the beginning of its text: perhaps it is
// another program's page.
func (a Answer) Unexpected() error {
	switch {
	case (a.Status == http.StatusUnauthorized || a.Status == http.StatusTooManyRequests) && a.token:
		return fmt.Errorf("%w at %s: the token is wrong (%d)\nadmin.token has to be the one with which errand was started: use its configuration with -c, or restart errand if the token has changed since",
			ErrWrongToken, a.Address, a.Status)
	case a.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w at %s: it requires a token (401)\nSet admin.token in the configuration to the one with which errand was started", ErrWrongToken, a.Address)
	}
	text := []rune(logview.OneLine(a.Text()))
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted], '…')
	}
	if a.isPage() {
		return a.foreign("with a page")
	}
	return fmt.Errorf("errand at %s answered %d %s: %s", a.Address, a.Status, http.StatusText(a.Status), string(text))
}

// isPage reports whether the answer is a web page: errand answers commands with text or JSON.
func (a Answer) isPage() bool { return strings.HasPrefix(a.Text(), "<") }

// foreign returns the error for an answer that errand does not give. how continues "answered 200 OK".
func (a Answer) foreign(how string) error {
	return fmt.Errorf("%s answered %d %s %s, so it may be another program, or another version of errand\nUse errand's configuration with -c, or run `errand doctor`",
		a.Address, a.Status, http.StatusText(a.Status), how)
}

// CheckText returns an error unless the answer is a text that errand has written.
func (a Answer) CheckText() error {
	switch {
	case a.isPage():
		return a.foreign("with a page")
	case !a.Named:
		return a.foreign("without errand's name in its header")
	case a.Text() == "" || a.Text() == "null":
		return a.foreign("without a text")
	}
	return nil
}

// CheckJSON returns an error unless the answer is a JSON object that has these fields, and none of them is null.
func (a Answer) CheckJSON(fields ...string) error {
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(a.Body, &object); {
	case a.isPage():
		return a.foreign("with a page")
	case err != nil || object == nil:
		return a.foreign("without the JSON that is expected")
	}
	for _, f := range fields {
		if value := object[f]; value == nil || string(value) == "null" {
			return a.foreign(fmt.Sprintf("without %q in its JSON", f))
		}
	}
	return nil
}

// maxQuoted is how much of an unexpected answer is quoted, in characters.
const maxQuoted = 200

// Ask sends a request for a path, with an optional query, to the running errand, at admin.listen or listen, with admin.token. Its
// error is ErrNotRunning if no connection is made, and ErrNoAnswer if nothing answers there.
func Ask(ctx context.Context, cfg config.Config, method, path string) (Answer, error) {
	return request(ctx, cfg, method, path, nil)
}

// readTimeout is the timeout of one request that reads.
const readTimeout = 30 * time.Second

// GetJSON returns errand's answer to a GET request if it is a JSON object with these fields and the status 200. Its errors say what to do.
func GetJSON(ctx context.Context, cfg config.Config, path string, fields ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a, err := Ask(ctx, cfg, http.MethodGet, path)
	switch {
	case errors.Is(err, ErrNotRunning):
		return nil, fmt.Errorf("%w\nStart it with `errand serve`, use its configuration with -c, or run `errand doctor`", err)
	case err != nil:
		return nil, err
	case a.Status == http.StatusNotFound && strings.HasPrefix(a.Text(), NoTask):
		return nil, errors.New(logview.OneLine(a.Text()) + "\n`errand tasks --all` lists the tasks")
	case a.Status != http.StatusOK:
		return nil, a.Unexpected()
	}
	return a.Body, a.CheckJSON(fields...)
}

// NoTask begins errand's answer about a task that does not exist.
const NoTask = "errand has no task"

// Send is like Ask for a request that posts a form.
func Send(ctx context.Context, cfg config.Config, path string, form url.Values) (Answer, error) {
	return request(ctx, cfg, http.MethodPost, path, form)
}

func request(ctx context.Context, cfg config.Config, method, path string, form url.Values) (Answer, error) {
	resp, a, err := Begin(ctx, cfg, method, path, form)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if a.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1)); err != nil {
		return a, Unanswered(method, a.Address, err)
	}
	if len(a.Body) > MaxAnswer {
		return a, fmt.Errorf("errand at %s answered with more than %d MiB, which is not read; is this errand?", a.Address, MaxAnswer>>20)
	}
	return a, nil
}

// Begin sends a request and returns its answer without the body, which the caller reads and closes.
func Begin(ctx context.Context, cfg config.Config, method, path string, form url.Values) (*http.Response, Answer, error) {
	listen := cmp.Or(cfg.Admin.Listen, cfg.Listen)
	a := Answer{Address: Address(listen)}
	client, base := New(cfg, listen)
	path, query, _ := strings.Cut(path, "?")
	target := url.URL{Path: path, RawQuery: query}
	r, err := http.NewRequestWithContext(ctx, method, base+target.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, a, fmt.Errorf("ask errand: %w", err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token := cfg.Admin.Token.Reveal(); token != "" {
		a.token = true
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, a, Unanswered(method, a.Address, err)
	}
	a.Status, a.Named = resp.StatusCode, resp.Header.Get("Server") == ServerName
	return resp, a, nil
}

// Unanswered returns the error for a request without a whole answer. Unless no connection was made, a command may have been carried
// out.
func Unanswered(method, address string, err error) error {
	var failed *net.OpError
	switch {
	case errors.As(err, &failed) && failed.Op == "dial":
		return fmt.Errorf("ask errand at %s: %w: %w", address, ErrNotRunning, err)
	case method == http.MethodGet:
		return fmt.Errorf("ask errand at %s: %w: %w", address, ErrNoAnswer, err)
	}
	return fmt.Errorf("ask errand at %s: %w: %w\nIt may have carried the command out: look at `errand audit`", address, ErrNoAnswer, err)
}
