package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// An action is a command that operators and people with write access can give on a task's page, and operators by the program of the
// same name.
type action struct {
	Verb state.Verb
	// Label is the text of the button, Effect describes what the command does, for people.
	Label, Effect string
	// Confirm states that a page asks before the command is given.
	Confirm bool
	Ask     string // the label of the field for the arguments; empty if there is none
}

// actions returns the commands that operators can give. Approvals are not among them: they need a GitHub account.
func actions() []action {
	return []action{
		{Verb: state.VerbStop, Label: "Stop", Effect: "Stops the running agent, keeps its work, and waits for a retry."},
		{Verb: state.VerbRetry, Label: "Retry", Effect: "Continues where the task stopped, or checks again whether it can continue."},
		{
			Verb: state.VerbBudget, Label: "Raise a limit", Effect: "Raises the task's limit on cost, tokens or VM hours.",
			Ask: "Add, for example, +5 (dollars), +500k tokens, or +12h (of VMs)",
		},
		{Verb: state.VerbCancel, Label: "Cancel", Confirm: true, Effect: "Ends the task. A running agent is stopped; published commits and pull requests stay."},
		{
			Verb: state.VerbRestart, Label: "Restart", Confirm: true,
			Effect: "Begins the task again from its issue, with a new plan. A running agent is stopped and the pull request is closed.",
		},
	}
}

// offered returns the actions that make sense for a task now.
func offered(t *state.Task, now time.Time) []action {
	return slices.DeleteFunc(actions(), func(a action) bool {
		switch a.Verb {
		case state.VerbStop:
			return !t.Phase.Working() && t.Phase != state.PhaseInterrupted
		case state.VerbRetry:
			return !retriable(t, now)
		case state.VerbRestart:
			return false
		}
		return t.Ended()
	})
}

// retriable reports whether `retry` changes something.
func retriable(t *state.Task, now time.Time) bool {
	switch t.Phase {
	case state.PhaseFailed, state.PhaseInterrupted, state.PhaseAwaitingAnswer, state.PhasePRClosed:
		return true
	case state.PhaseAwaitingPublishApproval:
		return t.NewestPlan().Stale != ""
	case state.PhaseCancelled:
		return t.CanResume(now) || t.CanContinuePR(now)
	}
	return t.Phase.Working() && t.Waiting != nil
}

// actionOf returns the action of a path, or nil.
func actionOf(r *http.Request) *action {
	list := actions()
	i := slices.IndexFunc(list, func(a action) bool { return string(a.Verb) == r.PathValue("action") })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// actTime is the timeout of one action. GitHub may be asked for the issue.
const actTime = time.Minute

// requestID matches the IDs of requests, which clients choose so that a repeated request counts once.
var requestID = regexp.MustCompile(`^[A-Za-z0-9-]{16,64}$`)

// An UnchangedError is why a command failed before it could change anything.
type UnchangedError struct{ Err error }

func (e UnchangedError) Error() string { return e.Err.Error() }
func (e UnchangedError) Unwrap() error { return e.Err }

// act gives a command to a task. Programs get one line of text: 200 if it was carried out, 409 with the reason if it was refused, 429
// if the person gave too many, 502
// if GitHub could not be asked, 500 if it is unknown whether it was carried out. Browsers return to the task's page, which shows the result.
func (p *pages) act(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), actTime)
	defer cancel()
	a := actionOf(r)
	if a == nil {
		p.notFound(w, r)
		return
	}
	if err := r.ParseForm(); err != nil {
		p.problem(w, r, http.StatusRequestEntityTooLarge, "The request could not be read, or it is too large. Send only `args` and `id`, as a form.")
		return
	}
	args := strings.TrimSpace(r.PostFormValue("args"))
	order, err := command.Read(a.Verb, args)
	if err != nil {
		p.problem(w, r, http.StatusBadRequest, "The command was not carried out: "+err.Error()+".")
		return
	}
	viewer := login.ViewerOf(r)
	if wait := p.shares.act(viewer, p.cfg.Now()); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		p.problem(w, r, http.StatusTooManyRequests, "The command was not carried out: you gave many within a short time. Try again in a few seconds.")
		return
	}
	t := taskOf(r)
	done := p.entry(r)
	done.Subject, done.Command = fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue), command.Format(order)
	var by state.Person // zero for operators, also for those who signed in
	if !viewer.Operator() {
		by, _ = viewer.Person()
	}
	done, err = p.cfg.Act(ctx, t, by, order, done)
	p.answer(w, r, done, err, taskPath(t)+"#actions")
}

// answer answers a command; browsers return to a page.
func (p *pages) answer(w http.ResponseWriter, r *http.Request, done store.Action, err error, back string) {
	switch {
	case err != nil && r.Context().Err() == nil:
		p.cfg.Log.Warn().Err(err).Str("command", done.Command).Str("subject", done.Subject).Msg("failed to carry out a command")
		why := ": " + err.Error() + ". "
		if !login.ViewerOf(r).Operator() {
			why = ". " + detailsForOperators + " "
		}
		var unchanged UnchangedError
		if errors.As(err, &unchanged) {
			p.problem(w, r, http.StatusBadGateway, "The command was not carried out"+why+"Try again.")
			return
		}
		p.problem(w, r, http.StatusInternalServerError, "The command failed, but it may have been carried out"+why+"Look at the pages or `errand audit` before you repeat it.")
	case err != nil: // the client has disconnected
	case login.WantsHTML(r):
		http.Redirect(w, r, back, http.StatusSeeOther)
	case done.Refused:
		http.Error(w, done.Result, http.StatusConflict)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, done.Result+"\n")
	}
}

// entry returns an entry of the audit log for a request.
func (p *pages) entry(r *http.Request) store.Action {
	id := r.PostFormValue("id")
	if !requestID.MatchString(id) {
		id = rand.Text()
	}
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	return store.Action{ID: id, At: p.cfg.Now().UTC(), By: login.NameOf(r), From: from}
}

// keyNamed returns the key of the task OWNER/REPO#N, or a zero key if it cannot be found.
func (p *pages) keyNamed(ctx context.Context, subject string) state.TaskKey {
	repo, number, _ := strings.Cut(subject, "#")
	owner, name, _ := strings.Cut(repo, "/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return state.TaskKey{}
	}
	key, err := p.endedTasks.find(ctx, owner, name, n)
	if err != nil {
		p.cfg.Log.Warn().Err(err).Str("subject", subject).Msg("failed to find the task of the audit log")
	}
	return key
}

// confirmation is the data of the page that asks whether a command is meant.
type confirmation struct {
	Card   card
	Action action
	ID     string
}

// confirm asks whether a command is meant. It changes nothing.
func (p *pages) confirm(w http.ResponseWriter, r *http.Request) {
	a := actionOf(r)
	if a == nil || !a.Confirm {
		p.notFound(w, r)
		return
	}
	p.askWhether(w, r, taskOf(r), *a)
}

// askWhether asks whether an action on a task is meant.
func (p *pages) askWhether(w http.ResponseWriter, r *http.Request, t *state.Task, a action) {
	c := confirmation{Card: newCard(t), Action: a, ID: rand.Text()}
	p.show(w, r, http.StatusOK, "confirm", page{Title: fmt.Sprintf("%s %s#%d?", a.Label, c.Card.Repo, c.Card.Issue), Data: c})
}

// readActions adds the actions that are possible, and those of the past, to a task's page.
func (p *pages) readActions(ctx context.Context, v *taskView, viewer login.Viewer) error {
	if p.cfg.Act == nil {
		return nil
	}
	if mayAct(viewer, v.Task) {
		v.Offered, v.ActionID = offered(v.Task, p.cfg.Now()), rand.Text()
	}
	if viewer.Operator() && p.cfg.Destroy != nil && (v.Task.VM != nil || v.Task.Suspended != nil) {
		v.Offered = append(v.Offered, destroyAction(v.Task))
	}
	if viewer.Operator() && p.cfg.Purge != nil && v.Task.Ended() {
		v.Offered = append(v.Offered, purgeAction())
	}
	var err error
	if v.Pausable = viewer.Operator() && p.cfg.Pauses != nil && !v.Task.Ended(); v.Pausable {
		list, err := p.cfg.Pauses.List(ctx)
		if err != nil {
			return fmt.Errorf("read the pauses: %w", err)
		}
		if i := slices.IndexFunc(list, func(one state.Pause) bool { return one.Repo == v.Task.Key.Repo }); i >= 0 {
			v.Paused = &list[i]
		}
	}
	v.Actions, err = p.actions(ctx, viewer, maxActions, func(a store.Action) bool { return a.Task == v.Task.Key })
	return err
}

// actions returns the newest n actions for which keep returns true and that the viewer may see. The addresses of operators and internal
// errors are for operators only.
func (p *pages) actions(ctx context.Context, viewer login.Viewer, n int, keep func(store.Action) bool) ([]store.Action, error) {
	list, err := p.cfg.Audit.List(ctx, n, func(a store.Action) bool {
		return keep(a) && (viewer.Operator() || !a.Task.IsZero() && viewer.MayRead(a.Task.Repo))
	})
	if !viewer.Operator() {
		for i := range list {
			list[i].From = ""
			for _, prefix := range []string{failedPrefix, incompletePrefix} {
				if strings.HasPrefix(list[i].Result, prefix) {
					list[i].Result = prefix + detailsForOperators
				}
			}
		}
	}
	return list, err
}

// Numbers of actions on a task's page and in audit.json.
const (
	maxActions  = 20
	maxAudit    = 500
	auditOfTask = "task" // the parameter of audit.json: OWNER/REPO#N
)

// audit serves the newest actions of operators as JSON, or those that concern one task, also under an earlier name of its repository.
func (p *pages) audit(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), boardTime)
	defer cancel()
	subject := r.URL.Query().Get(auditOfTask)
	key := p.keyNamed(ctx, subject)
	list, err := p.actions(ctx, login.ViewerOf(r), maxAudit, func(a store.Action) bool {
		return subject == "" || strings.EqualFold(a.Subject, subject) || key != state.TaskKey{} && a.Task == key
	})
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the audit log: %w", err))
		return
	}
	p.json(w, r, map[string]any{"actions": append([]store.Action{}, list...)})
}

// The results of actions that begin with one of these end with an internal error.
const (
	failedPrefix     = "failed: "
	incompletePrefix = "The purge is not complete: "
)

// audited stores an action that was not stored with its effect in the audit log.
func (p *pages) audited(ctx context.Context, a store.Action, err error) {
	var refusal Refusal
	switch {
	case p.cfg.Audit == nil:
		return
	case errors.As(err, &refusal):
		a.Refused, a.Result = true, refusal.Error()
	case err != nil:
		a.Refused, a.Result = true, failedPrefix+err.Error()
	}
	if err := p.cfg.Audit.Add(context.WithoutCancel(ctx), a); err != nil {
		p.cfg.Log.Error().Err(err).Str("command", a.Command).Msg("failed to write the audit log")
	}
}

// Pauses pauses and resumes work. The errors of Pause and Resume are a Refusal, an UnchangedError if it is sure that nothing
// changed, or another error.
type Pauses struct {
	List   func(ctx context.Context) ([]state.Pause, error)
	Pause  func(ctx context.Context, repo, reason string, a store.Action) (store.Action, error)
	Resume func(ctx context.Context, repo string, all bool, a store.Action) (store.Action, error)
	// UnderWay lists the work that goes on during a pause.
	UnderWay func(ctx context.Context) ([]Work, error)
}

// Work is something that goes on while errand is paused.
type Work struct {
	Task  string `json:"task,omitempty"` // OWNER/REPO#N; empty for a base image
	Doing string `json:"doing"`
}

// repoName matches OWNER/REPO.
var repoName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$`)

// pauseForm shows the form that pauses, perhaps with the name of a repository.
func (p *pages) pauseForm(w http.ResponseWriter, r *http.Request) {
	repo := r.URL.Query().Get("repo")
	if !repoName.MatchString(repo) {
		repo = ""
	}
	p.show(w, r, http.StatusOK, "pause", page{Title: "Pause", Data: repo})
}

// setPause pauses or resumes a repository, or everything if the form names none. Its answers are those of act.
func (p *pages) setPause(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), actTime)
	defer cancel()
	if err := r.ParseForm(); err != nil {
		p.problem(w, r, http.StatusRequestEntityTooLarge, "The request could not be read, or it is too large. Send only `repo`, `reason`, `all` and `id`, as a form.")
		return
	}
	repo := strings.TrimSpace(r.PostFormValue("repo"))
	if repo != "" && !repoName.MatchString(repo) {
		p.problem(w, r, http.StatusBadRequest, "Name the repository as OWNER/REPO, or leave it empty for all of them.")
		return
	}
	a := p.entry(r)
	a.Subject, a.Command = repo, strings.TrimPrefix(r.URL.Path, "/")
	var done store.Action
	var err error
	if a.Command == "pause" {
		done, err = p.cfg.Pauses.Pause(ctx, repo, r.PostFormValue("reason"), a)
	} else {
		done, err = p.cfg.Pauses.Resume(ctx, repo, r.PostFormValue("all") != "", a)
	}
	var refusal Refusal
	if errors.As(err, &refusal) {
		p.audited(ctx, a, err)
		p.problem(w, r, http.StatusConflict, refusal.Error())
		return
	}
	p.answer(w, r, done, err, "/status")
}

// paused serves the pauses in effect, and the work that goes on, as JSON.
func (p *pages) paused(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), boardTime)
	defer cancel()
	list, err := p.cfg.Pauses.List(ctx)
	var work []Work
	if err == nil {
		work, err = p.cfg.Pauses.UnderWay(ctx)
	}
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the pauses: %w", err))
		return
	}
	p.json(w, r, map[string]any{"paused": append([]state.Pause{}, list...), "under_way": append([]Work{}, work...)})
}
