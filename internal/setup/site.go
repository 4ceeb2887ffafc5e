package setup

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/forge/manifest"
)

// site is a page of this host that shows where a setup is. Its path has a random part, so that other users of this host cannot open
// it. The setup decides what the page shows; the handlers only pass on what the operator posts.
type site struct {
	solo    bool // for the creation of an App only, while the terminal asks the questions
	mux     *http.ServeMux
	tmpl    *template.Template
	token   string // of the path
	addr    string // IP:PORT
	hosts   []string
	srv     *http.Server
	down    chan struct{} // closed when the page is not served any more
	downErr error         // valid after that
	posts   chan post     // of the screen that is shown

	mu      sync.Mutex
	version int           // grows with each change
	changed chan struct{} // closed at the next change
	screen  screen
	steps   []progressStep
	current int
	form    *appForm                // the latest one
	leave   context.CancelCauseFunc // ends the current step
}

// A screen is what the setup wants from the operator.
type screen struct {
	ID     int // a form of another screen is not accepted
	Kind   kind
	Notice string
	Fields []field    // of questions
	Text   string     // why a step failed, or the last text
	Ways   []decision // buttons
	taken  bool       // the operator has posted its form
}

type kind string

// The kinds of screens.
const (
	working   kind = "working"
	asking    kind = "asking"
	creating  kind = "creating" // an App
	failing   kind = "failing"
	finishing kind = "finishing"
)

// progressStep is a step as the page shows it.
type progressStep struct {
	Title, State, Output string
}

// The states of a step that has no outcome.
const (
	toDo      = "to do"
	running   = "running"
	stepFails = "failed"
)

// maxOutput is how many bytes of a step's output the page keeps.
const maxOutput = 64 << 10

// post is what the operator posted.
type post struct {
	how    decision
	values url.Values
}

// send is the button that sends answers.
const send decision = "send"

// view is what the page shows.
type view struct {
	Title   string
	Nonce   string
	Style   template.CSS
	Script  template.JS
	Follows bool // reload the page when something has changed
	Solo    bool
	Stale   bool   // a form was not used
	Problem string // instead of everything else
	Back    string // page that continues after the problem
	Install string // page on which a new App is installed
	Version int
	Screen  screen
	App     *appView
	Steps   []progressStep
	Number  int           // of the current step, from 1; 0 for none
	Step    *progressStep // the current one
}

// appView is the form of an App.
type appView struct {
	Action, State, Manifest string
	Manifested              manifest.Manifest
}

// change changes what the page shows.
func (s *site) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// show shows a screen. Forms of earlier ones are not accepted any more.
func (s *site) show(next screen) {
	s.change(func() { s.replace(next) })
}

// replace is show while s.mu is locked.
func (s *site) replace(next screen) {
	next.ID = s.screen.ID + 1
	s.screen = next
	select {
	case <-s.posts: // of the earlier screen
	default:
	}
}

// showForm shows the form of an App.
func (s *site) showForm(form *appForm) {
	s.change(func() {
		s.form = form
		s.replace(screen{Kind: creating, Ways: s.screen.Ways})
	})
}

// appForm returns the latest form of an App, if there was one, and the screen that is shown.
func (s *site) appForm() (*appForm, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.form, s.screen.ID
}

// take marks a screen as used, if it is still shown.
func (s *site) take(id int) {
	s.change(func() { s.screen.taken = s.screen.taken || s.screen.ID == id })
}

// accept takes what the operator posted for a screen, once. It returns http.StatusConflict if the screen is another one by now.
func (s *site) accept(id int, how decision, p post) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := &s.screen
	switch {
	case id != shown.ID || shown.taken:
		return http.StatusConflict
	case how == send && shown.Kind == asking, slices.Contains(shown.Ways, how) && s.leave == nil:
		s.posts <- p // its buffer is empty, because nothing else was taken for this screen
	case slices.Contains(shown.Ways, how):
		s.leave(how)
	default:
		return http.StatusBadRequest
	}
	shown.taken = true
	return http.StatusOK
}

// await returns what the operator posts for the screen that is shown.
func (s *site) await(ctx context.Context) (post, error) {
	select {
	case p := <-s.posts:
		return p, nil
	case <-s.down:
		return post{how: stop}, s.downErr
	case <-ctx.Done():
		return post{how: stop}, ctx.Err()
	}
}

// settle waits until the operator can do something, but not for long.
func (s *site) settle(ctx context.Context) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ready, changed := !s.screen.taken && s.screen.Kind != working, s.changed
		s.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// view returns what the page shows now.
func (s *site) view() (view, error) {
	v, form := s.look()
	if form == nil {
		return v, nil
	}
	state, err := form.fresh() // waits for a conversion under way, during which the setup may have something to show
	if err != nil {
		return view{}, err
	}
	v.App = &appView{Action: form.action, State: state, Manifest: form.manifest, Manifested: form.manifested}
	return v, nil
}

// look returns what the page shows now, apart from the form of an App, and that form if it is shown.
func (s *site) look() (view, *appForm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{Title: "Set up errand", Version: s.version, Screen: s.screen, Steps: slices.Clone(s.steps)}
	if s.screen.taken {
		v.Screen = screen{Kind: working}
	}
	v.Follows = !s.solo && (v.Screen.Kind == working || v.Screen.Kind == creating)
	if s.current < len(v.Steps) && v.Screen.Kind != finishing {
		v.Number, v.Step = s.current+1, &v.Steps[s.current]
		if v.Screen.Kind == asking || v.Screen.Kind == creating {
			v.Step.State = "waits for you"
		}
	}
	if v.Screen.Kind != creating {
		return v, nil
	}
	return v, s.form
}
