package publish

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// commitMessage returns the message for uncommitted changes of an agent, and for squashed commits.
func (s *Steps) commitMessage(t *state.Task) string {
	v := step.Vars(t, t.Ticket, s.Redact)
	words := v.Task
	if t.Round > 0 {
		words = ""
		if t.Work != nil {
			words = firstLine(t.Work.Summary)
		}
	}
	return s.inForm(t, words)
}

// published returns a commit's message as it is published: without text that GitHub would act upon, with a first line in the
// form that the repository's template prescribes, and with the trailers.
func (s *Steps) published(t *state.Task, message string, trailers []string) string {
	home := homeOf(t)
	// The second pass handles the template's text; the agent's text is already clean.
	return pushgate.AddTrailers(pushgate.SafeMessage(s.inForm(t, pushgate.SafeMessage(message, home)), home), trailers...)
}

// trailers returns the lines about the person who approved the plan that the repository's settings add to every commit
// message. There are none if a plan needs no approval.
func (s *Steps) trailers(ctx context.Context, w *step.Attempt) ([]string, error) {
	t := w.Task
	a := t.Approval
	if !t.Settings.Trailers && !t.Settings.SignOff || a == nil || a.Kind != state.PlanThorough || a.By.Bot {
		return nil, nil
	}
	name, email, err := s.GitHub.Identity(ctx, w.Repo, a.By)
	if err != nil {
		return nil, fmt.Errorf("read the profile of who approved the plan: %w", err)
	}
	if email == "" {
		return nil, nil
	}
	person := fmt.Sprintf("%s <%s>", cmp.Or(pushgate.SafeName(name, homeOf(t)), a.By.Login), email)
	var lines []string
	if t.Settings.Trailers {
		lines = append(lines, "Co-authored-by: "+person)
	}
	if t.Settings.SignOff {
		lines = append(lines, "Signed-off-by: "+person)
	}
	return lines, nil
}

// inForm puts a message's first line into the form of the repository's template. Words for which that has no place
// begin the rest of the message.
func (s *Steps) inForm(t *state.Task, message string) string {
	line, rest, more := strings.Cut(message, "\n")
	subject, kept := naming.Subject(t.Settings.Commit, step.Vars(t, t.Ticket, s.Redact), t.Round > 0, line)
	switch {
	case subject == "":
		return message // the template gives nothing
	case !kept && line != "":
		return strings.TrimRight(subject+"\n\n"+line+"\n"+rest, "\n")
	case !more:
		return subject
	}
	return subject + "\n" + rest
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return runlog.Cut(line, 72)
}

// homeOf is where a task's commits belong.
func homeOf(t *state.Task) pushgate.Home {
	return pushgate.Home{Owner: t.Repo.Owner, Name: t.Repo.Name, Issue: t.Key.Issue}
}
