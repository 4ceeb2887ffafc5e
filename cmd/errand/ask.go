package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/selfclient"
)

// errNotRunning means that no connection to errand's address was made.
var errNotRunning = errors.New("errand cannot be reached")

// errNoAnswer means that a request was perhaps sent, but not answered in whole.
var errNoAnswer = errors.New("no answer from errand")

// maxAnswer is the maximum length of errand's answer, in bytes.
const maxAnswer = 16 << 20

// answer is the answer of the running errand.
type answer struct {
	address string
	status  int
	body    []byte
	token   bool // a token was sent
}

// text returns the answer without surrounding white space.
func (a answer) text() string { return strings.TrimSpace(string(a.body)) }

// errWrongToken means that errand did not accept the token, or that none was sent.
var errWrongToken = errors.New("errand refuses the request")

// unexpected returns the error for an answer that the command does not expect, with the beginning of its text: perhaps it is
// another program's page.
func (a answer) unexpected() error {
	switch {
	case (a.status == http.StatusUnauthorized || a.status == http.StatusTooManyRequests) && a.token:
		return fmt.Errorf("%w at %s: the token is wrong (%d)\nadmin.token has to be the one with which errand was started: use its configuration with -c, or restart errand if the token has changed since",
			errWrongToken, a.address, a.status)
	case a.status == http.StatusUnauthorized:
		return fmt.Errorf("%w at %s: it requires a token (401)\nSet admin.token in the configuration to the one with which errand was started", errWrongToken, a.address)
	}
	text := []rune(oneLine(a.text()))
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted], '…')
	}
	return fmt.Errorf("errand at %s answered %d %s: %s", a.address, a.status, http.StatusText(a.status), string(text))
}

// maxQuoted is how much of an unexpected answer is quoted, in characters.
const maxQuoted = 200

// ask sends a request for a path, with an optional query, to the running errand, at admin.listen or listen, with admin.token. Its
// error is errNotRunning if no connection is made, and errNoAnswer if nothing answers there.
func ask(ctx context.Context, cfg config.Config, method, path string) (answer, error) {
	return request(ctx, cfg, method, path, nil)
}

// readTimeout is the timeout of one request that reads.
const readTimeout = 30 * time.Second

// getJSON returns errand's answer to a GET request if it is one with the status 200. Its errors say what to do.
func getJSON(ctx context.Context, cfg config.Config, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a, err := ask(ctx, cfg, http.MethodGet, path)
	switch {
	case errors.Is(err, errNotRunning):
		return nil, fmt.Errorf("%w\nStart it with `errand serve`, use its configuration with -c, or run `errand doctor`", err)
	case err != nil:
		return nil, err
	case a.status == http.StatusNotFound && strings.HasPrefix(a.text(), noTask):
		return nil, errors.New(oneLine(a.text()) + "\n`errand tasks --all` lists the tasks")
	case a.status != http.StatusOK:
		return nil, a.unexpected()
	}
	return a.body, nil
}

// noTask begins errand's answer about a task that does not exist.
const noTask = "errand has no task"

// send is like ask for a request that posts a form.
func send(ctx context.Context, cfg config.Config, path string, form url.Values) (answer, error) {
	return request(ctx, cfg, http.MethodPost, path, form)
}

func request(ctx context.Context, cfg config.Config, method, path string, form url.Values) (answer, error) {
	resp, a, err := beginRequest(ctx, cfg, method, path, form)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return a, unanswered(method, a.address, err)
	}
	if len(a.body) > maxAnswer {
		return a, fmt.Errorf("errand at %s answered with more than %d MiB, which is not read; is this errand?", a.address, maxAnswer>>20)
	}
	return a, nil
}

// beginRequest sends a request and returns its answer without the body, which the caller reads and closes.
func beginRequest(ctx context.Context, cfg config.Config, method, path string, form url.Values) (*http.Response, answer, error) {
	listen := cmp.Or(cfg.Admin.Listen, cfg.Listen)
	a := answer{address: selfclient.Address(listen)}
	client, base := selfclient.New(cfg, listen)
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
		return nil, a, unanswered(method, a.address, err)
	}
	a.status = resp.StatusCode
	return resp, a, nil
}

// unanswered returns the error for a request without a whole answer. Unless no connection was made, a command may have been carried
// out.
func unanswered(method, address string, err error) error {
	var failed *net.OpError
	switch {
	case errors.As(err, &failed) && failed.Op == "dial":
		return fmt.Errorf("ask errand at %s: %w: %w", address, errNotRunning, err)
	case method == http.MethodGet:
		return fmt.Errorf("ask errand at %s: %w: %w", address, errNoAnswer, err)
	}
	return fmt.Errorf("ask errand at %s: %w: %w\nIt may have carried the command out: look at `errand audit`", address, errNoAnswer, err)
}
