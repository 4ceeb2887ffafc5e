package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/state"
)

// Unstarted is an open issue that had errand's label or assignee before errand watched its repository for that. errand starts only
// when somebody triggers it again, or an operator adopts it.
type Unstarted struct {
	Repo    string           `json:"repo"`
	Issue   int              `json:"issue"`
	Title   string           `json:"title"`
	URL     string           `json:"url,omitempty"`
	Trigger state.TriggerVia `json:"trigger"` // assigned or label
}

// maxUnstarted is the maximum number of such issues that the board lists.
const maxUnstarted = 100

// readUnstarted adds the issues with an old trigger that have no open task.
func (p *pages) readUnstarted(b *board) {
	if p.cfg.Unstarted == nil {
		return
	}
	type key struct {
		repo  string
		issue int
	}
	open := map[key]bool{}
	for _, c := range b.Tasks {
		open[key{c.Repo, c.Issue}] = true
	}
	for _, u := range p.cfg.Unstarted() {
		if open[key{u.Repo, u.Issue}] {
			continue
		}
		if b.UnstartedCount++; len(b.Unstarted) < maxUnstarted {
			b.Unstarted = append(b.Unstarted, u)
		}
	}
}

// A Refusal is the reason, for people, why an issue cannot be adopted.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// adoptTime is the timeout for adopting one issue. GitHub is asked a few times.
const adoptTime = time.Minute

// namedIssue returns the issue of a path. If it is none, it answers and returns 0.
func namedIssue(w http.ResponseWriter, r *http.Request) (repo string, number int) {
	number, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || number <= 0 {
		http.Error(w, "errand: the number of the issue is not a number", http.StatusBadRequest)
		return "", 0
	}
	return r.PathValue("owner") + "/" + r.PathValue("repo"), number
}

// adopt starts the task of an issue with an old trigger. It is for `errand adopt` and answers with one line of text: 200 if the task
// starts, 409 with the reason if it cannot, 502 if GitHub could not be asked.
func (p *pages) adopt(w http.ResponseWriter, r *http.Request) {
	repo, number := namedIssue(w, r)
	if number == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adoptTime)
	defer cancel()
	who, err := p.cfg.Adopt(ctx, repo, number)
	a := p.entry(r)
	a.Subject, a.Command, a.Result = fmt.Sprintf("%s#%d", repo, number), "adopt", "started: "+who
	a.Task = p.keyNamed(ctx, a.Subject)
	p.audited(ctx, a, err)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		http.Error(w, refusal.Error(), http.StatusConflict)
	case err != nil:
		p.cfg.Log.Warn().Err(err).Msg("failed to adopt an issue")
		http.Error(w, fmt.Sprintf("the issue could not be adopted: %v; try again", err), http.StatusBadGateway)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, who+"\n")
	}
}

// Preview is an issue as the operator is shown it before a task begins for it, for `errand run`.
type Preview struct {
	Issue    string           `json:"issue"` // OWNER/REPO#N
	URL      string           `json:"url"`
	Author   string           `json:"author"`
	Title    string           `json:"title"`
	Body     string           `json:"body"`
	Text     string           `json:"text"` // state.FreezeHash of title and body
	Comments []PreviewComment `json:"comments"`
	Files    []string         `json:"files"`  // addresses of the files attached to the text, which the agent gets, too
	Plan     string           `json:"plan"`   // the repository's setting
	Hidden   []string         `json:"hidden"` // what is removed from the texts before the agent gets them
	Waits    []string         `json:"waits"`  // why the task would wait after its beginning
}

// PreviewComment is a comment on the issue.
type PreviewComment struct {
	By       string `json:"by"`
	Withheld string `json:"withheld,omitempty"` // why the agent does not get it
}

// preview answers with an issue for which the operator wants to begin a task, as JSON. The errors are those of begin.
func (p *pages) preview(w http.ResponseWriter, r *http.Request) {
	repo, number := namedIssue(w, r)
	if number == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adoptTime)
	defer cancel()
	shown, err := p.cfg.Preview(ctx, repo, number)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		http.Error(w, refusal.Error(), http.StatusConflict)
	case err != nil:
		p.cfg.Log.Warn().Err(err).Msg("failed to read an issue for the operator")
		http.Error(w, fmt.Sprintf("the issue could not be read: %v; try again", err), http.StatusBadGateway)
	default:
		p.json(w, r, shown)
	}
}

// textHash matches the value of Preview.Text.
var textHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// begin begins a task for an issue whose text, named by its hash, the operator has seen and vouches for. It answers with one line of
// text: 200 if the task begins, 409 with the reason if it cannot or if the issue has another text, and otherwise like act.
func (p *pages) begin(w http.ResponseWriter, r *http.Request) {
	repo, number := namedIssue(w, r)
	if number == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adoptTime)
	defer cancel()
	if err := r.ParseForm(); err != nil || !textHash.MatchString(r.PostFormValue("text")) {
		p.problem(w, r, http.StatusBadRequest, "Send the hash of the text that you vouch for as `text`, and `id`, as a form.")
		return
	}
	a := p.entry(r)
	a.Subject, a.Command = fmt.Sprintf("%s#%d", repo, number), "run"
	done, err := p.cfg.Begin(ctx, repo, number, r.PostFormValue("text"), a)
	var refusal Refusal
	if errors.As(err, &refusal) {
		a.Task = p.keyNamed(ctx, a.Subject)
		p.audited(ctx, a, err)
		p.problem(w, r, http.StatusConflict, refusal.Error())
		return
	}
	p.answer(w, r, done, err, "/status")
}

// purgeTime is the timeout for purging a task: errand waits for work that is under way, and rewrites the store.
const purgeTime = 5 * time.Minute

// purgeAction is the action that deletes the texts of an ended task.
func purgeAction() action {
	return action{
		Verb: "purge", Label: "Purge", Confirm: true,
		Effect: "Deletes everything that errand has stored of the task's texts, for good: the issue's text, comments, plans, prompts, transcripts, archives and attachments. " +
			"The task can then not be continued. Costs and times stay, and so do comments on GitHub, backups of errand and its log.",
	}
}

// operatorsTask returns the task that a path for operators names. If there is none, it answers and returns nil.
func (p *pages) operatorsTask(w http.ResponseWriter, r *http.Request) *state.Task {
	t, err := p.readableTask(r)
	switch {
	case err != nil:
		p.fail(w, r, fmt.Errorf("find the task: %w", err))
	case t == nil:
		p.problem(w, r, http.StatusNotFound, noTask)
	}
	if err != nil {
		return nil
	}
	return t
}

// confirmPurge asks whether a task's texts are to be deleted.
func (p *pages) confirmPurge(w http.ResponseWriter, r *http.Request) {
	if t := p.operatorsTask(w, r); t != nil {
		p.askWhether(w, r, t, purgeAction())
	}
}

// purge deletes the texts of an ended task. Programs get the result as JSON, or 409 with the reason for a refusal, or 500 if it failed or
// something is left. Browsers return to the task's page.
func (p *pages) purge(w http.ResponseWriter, r *http.Request) {
	t := p.operatorsTask(w, r)
	if t == nil {
		return
	}
	if err := r.ParseForm(); err != nil {
		p.problem(w, r, http.StatusRequestEntityTooLarge, "The request could not be read, or it is too large. Send only `id`, as a form.")
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the server's read timeout does not apply
	ctx, cancel := context.WithTimeout(r.Context(), purgeTime)
	defer cancel()
	a := p.entry(r)
	a.Task, a.Subject, a.Command = t.Key, fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue), "purge"
	done, err := p.cfg.Purge(ctx, t.Key, a)
	p.endedTasks.forget(ctx)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		p.audited(ctx, a, err)
		p.problem(w, r, http.StatusConflict, refusal.Error())
	case err != nil:
		p.cfg.Log.Error().Err(err).Str("task", t.Key.String()).Msg("failed to purge a task")
		text := "The task could not be purged: " + err.Error()
		if !done.At.IsZero() { // the texts cannot be read any more, but are not gone
			text = incompletePrefix + err.Error()
			a.Result, err = text, nil
		}
		p.audited(ctx, a, err)
		p.problem(w, r, http.StatusInternalServerError, text)
	case login.WantsHTML(r):
		http.Redirect(w, r, taskPath(t)+"#actions", http.StatusSeeOther)
	default:
		p.json(w, r, done)
	}
}

// Destroyed is the result of deleting the VM and the saved work of a task.
type Destroyed struct {
	Task      string `json:"task"`         // OWNER/REPO#N
	VM        string `json:"vm,omitempty"` // that is being deleted
	SavedWork bool   `json:"saved_work"`   // saved work is being deleted
	Stopped   bool   `json:"stopped"`      // the task was at work, and was stopped
	Result    string `json:"result"`       // one line for people
	Refused   bool   `json:"-"`            // nothing changed, and Result says why
}

// destroyAction is the action that deletes the VM and the saved work of a task.
func destroyAction(t *state.Task) action {
	a := action{
		Verb: "destroy", Label: "Delete the VM", Confirm: true,
		Effect: "Deletes the task's VM and its saved work now. Changes and commits that are not published, the agent's session and cached folders are lost.",
	}
	if !t.Ended() {
		a.Effect += " The task continues on a new VM."
	}
	if !t.Ended() && t.Run != nil {
		a.Effect += " An agent works on it: stop it first."
	}
	return a
}

// confirmDestroy asks whether a task's VM is to be deleted.
func (p *pages) confirmDestroy(w http.ResponseWriter, r *http.Request) {
	if t := p.operatorsTask(w, r); t != nil {
		p.askWhether(w, r, t, destroyAction(t))
	}
}

// destroy deletes the VM and the saved work of a task; with `force` in the form also if it uses them. Programs get the result as JSON, or
// 409 with the reason for a refusal. Browsers return to the task's page.
func (p *pages) destroy(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), actTime)
	defer cancel()
	t := p.operatorsTask(w, r)
	if t == nil {
		return
	}
	if err := r.ParseForm(); err != nil {
		p.problem(w, r, http.StatusRequestEntityTooLarge, "The request could not be read, or it is too large. Send only `force` and `id`, as a form.")
		return
	}
	force := r.PostFormValue("force") != ""
	a := p.entry(r)
	a.Task, a.Subject, a.Command = t.Key, fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue), "destroy"
	if force {
		a.Command += " force"
	}
	done, err := p.cfg.Destroy(ctx, t.Key, force, a)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		p.audited(ctx, a, err)
		p.problem(w, r, http.StatusConflict, refusal.Error())
	case err != nil || done.Refused || login.WantsHTML(r):
		a.Refused, a.Result = done.Refused, done.Result
		p.answer(w, r, a, err, taskPath(t)+"#actions")
	default:
		p.json(w, r, done)
	}
}

// BackupCopy is a copy of the store and the files at one moment.
type BackupCopy interface {
	// WriteTo writes the archive.
	WriteTo(ctx context.Context, w io.Writer) error
	Close() error
}

// backup answers with an archive of the store and the files. It contains secrets, so the action is in the audit log before anything is
// sent. Answers are 409 while another backup is made, and 500 with the reason. If the archive fails in the middle, the connection is
// cut, so that nobody takes the beginning for all of it.
func (p *pages) backup(w http.ResponseWriter, r *http.Request) {
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Time{}) // the server's read timeout does not apply
	a := p.entry(r)
	a.Command, a.Result = "backup", "sent to the operator"
	c, err := p.cfg.Backup(r.Context())
	if err != nil {
		p.audited(r.Context(), a, err)
		var refusal Refusal
		if errors.As(err, &refusal) {
			http.Error(w, refusal.Error(), http.StatusConflict)
			return
		}
		p.cfg.Log.Error().Err(err).Msg("failed to make a backup")
		http.Error(w, "The backup failed: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() {
		if err := c.Close(); err != nil {
			p.cfg.Log.Error().Err(err).Msg("failed to remove the copy of a backup")
		}
	}()
	if err := p.cfg.Audit.Add(r.Context(), a); err != nil {
		p.cfg.Log.Error().Err(err).Msg("failed to write the audit log; no backup is sent")
		http.Error(w, "The backup failed: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/zstd")
	if err := c.WriteTo(r.Context(), moving{w, ctl}); err != nil {
		p.cfg.Log.Error().Err(err).Msg("failed to send a backup")
		panic(http.ErrAbortHandler)
	}
}

// moving writes to a client that has to read: one that stalls would keep others from making a backup.
type moving struct {
	to  io.Writer
	ctl *http.ResponseController
}

func (m moving) Write(b []byte) (int, error) {
	_ = m.ctl.SetWriteDeadline(time.Now().Add(writeTime)) // without a deadline TCP times out eventually
	return m.to.Write(b)
}
