package setup

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/forge/manifest"
)

// stateLife is how long GitHub's answer to a form is accepted.
const stateLife = time.Hour

// appForm is the form that posts an App's manifest to GitHub, and what became of it. It holds no secret of the App.
type appForm struct {
	action     string // page of GitHub to which the manifest is posted
	manifest   string // JSON
	manifested manifest.Manifest
	now        func() time.Time
	// convert exchanges a code for the App's credentials, stores them, and returns the page on which the App is installed.
	convert func(code string) (installPage string, err error)
	results chan error // one per attempt to convert a code

	mu      sync.Mutex
	state   string // of the newest form; empty after it was used
	stateAt time.Time
	success string // the state with which the App was created
	closed  bool   // the App exists, or the form is not needed any more
}

func newAppForm(action string, m manifest.Manifest, now func() time.Time, convert func(string) (string, error)) (*appForm, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	return &appForm{action: action, manifest: string(text), manifested: m, now: now, convert: convert, results: make(chan error, 16)}, nil
}

// fresh returns a state for the form on a page. A page that is reloaded does not invalidate a form that is on GitHub already.
func (f *appForm) fresh() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == "" || f.now().Sub(f.stateAt) > stateLife/2 {
		state, err := randomToken()
		if err != nil {
			return "", err
		}
		f.state, f.stateAt = state, f.now()
	}
	return f.state, nil
}

// An arrival is what happened to GitHub's answer to a form.
type arrival int

const (
	late        arrival = iota // the App was created by this answer before
	foreign                    // the state is not that of an open form, or too old
	rejected                   // GitHub does not accept the code
	unconverted                // the code could not be exchanged, or the credentials could not be stored
	created                    // the App's credentials are stored
)

// arrive takes GitHub's answer. A state is accepted once, and for an hour.
func (f *appForm) arrive(state, code string) (how arrival, installPage string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	matches := func(expected string) bool {
		return expected != "" && subtle.ConstantTimeCompare([]byte(state), []byte(expected)) == 1
	}
	switch {
	case matches(f.success):
		return late, "", nil
	case f.closed || !matches(f.state) || f.now().Sub(f.stateAt) > stateLife:
		return foreign, "", nil
	}
	f.state = ""
	installPage, err = f.convert(code)
	switch {
	case err == nil:
		how, f.success, f.closed = created, state, true
	case errors.As(err, new(manifest.RefusedError)):
		how = rejected
	default:
		how = unconverted
	}
	select {
	case f.results <- err:
	default: // nobody reads that many failures
	}
	return how, installPage, err
}

// close makes the form accept no answer any more. It waits for a conversion under way.
func (f *appForm) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// last closes the form because of an error, and returns that, or how a conversion under way ended: it is finished first, because GitHub
// answers it only once.
func (f *appForm) last(why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	select {
	case err := <-f.results:
		if !errors.As(err, new(manifest.RefusedError)) {
			return err
		}
	default:
	}
	return why
}
