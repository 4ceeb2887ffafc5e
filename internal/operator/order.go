package operator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
)

// orderTimeout is the timeout of one order, a little longer than errand's own.
const orderTimeout = 70 * time.Second

// A refusal is errand's reason for not carrying out one order. It says nothing about others.
type refusal string

func (r refusal) Error() string { return string(r) }

// tasksOnly requires one or more tasks as arguments.
func tasksOnly(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(fmt.Errorf("%s takes a task, as OWNER/REPO#N", c.Name()))
	}
	for _, t := range args {
		if !cli.TaskName.MatchString(t) {
			return cli.Usage(fmt.Errorf("%s takes tasks as OWNER/REPO#N, but got %q", c.Name(), t))
		}
	}
	return nil
}

// pageOf returns the path of a page of a task, or of an issue.
func pageOf(task, page string) string {
	repo, number, _ := strings.Cut(task, "#")
	return "/tasks/" + repo + "/" + number + "/" + page
}

// post sends an order. Its error is a refusal if errand refuses.
func post(ctx context.Context, timeout time.Duration, cfg config.Config, path string, form url.Values) (selfclient.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	form.Set("id", rand.Text())
	return accepted(selfclient.Send(ctx, cfg, path, form))
}

// accepted returns an answer if errand did what it was asked, and an error otherwise: a refusal if errand gives a reason.
func accepted(a selfclient.Answer, err error) (selfclient.Answer, error) {
	switch {
	case errors.Is(err, selfclient.ErrNotRunning):
		return a, fmt.Errorf("%w\nStart it with `errand serve`, and use its configuration with -c", err)
	case err != nil:
		return a, err
	case a.Status == http.StatusOK:
		return a, a.CheckText()
	case a.Status == http.StatusConflict, a.Status == http.StatusBadGateway, a.Status == http.StatusBadRequest,
		a.Status == http.StatusNotFound && strings.HasPrefix(a.Text(), selfclient.NoTask):
		if err := a.CheckText(); err != nil {
			return a, err
		}
		return a, refusal(a.Text())
	}
	return a, a.Unexpected()
}

// An order is what each carries out.
type order struct {
	notDone string // how a refusal is printed, such as "not purged"
	asJSON  bool
	// do carries out the order for one subject, and returns the text or the JSON to print.
	do func(ctx context.Context, subject string) (string, error)
}

// each carries out an order for each subject, a task, an issue or a repository, in turn. A refusal is printed and does not affect the others;
// any other error ends the loop and names the rest.
func (o order) each(ctx context.Context, w cli.World, subjects []string) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	refused := 0
	for i, subject := range subjects {
		text, err := o.do(ctx, subject)
		var reason refusal
		switch {
		case errors.As(err, &reason):
			refused++
			if o.asJSON {
				_, err = io.WriteString(w.Out, outcome{subject, true, reason.Error()}.json())
				break
			}
			_, err = fmt.Fprintf(w.Err, "%s: %s: %s\n", subject, o.notDone, logview.OneLine(reason.Error()))
		case err == nil:
			_, err = io.WriteString(w.Out, text)
		case !errors.Is(err, selfclient.ErrNotRunning):
			err = fmt.Errorf("%s: %w", subject, err)
			if rest := subjects[i+1:]; len(rest) > 0 {
				err = fmt.Errorf("%w\nNot tried: %s", err, strings.Join(rest, ", "))
			}
		}
		if err != nil {
			return err
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d were %s", refused, len(subjects), o.notDone)
	}
	return nil
}

// line is a line of output about a subject: for people, or an outcome.
func (o order) line(subject, text string) string {
	if o.asJSON {
		return outcome{subject, false, text}.json()
	}
	return subject + ": " + logview.OneLine(text) + "\n"
}

// outcome is what an order did to a subject, for programs, with the names that audit.json has. Fields may be added but never change.
type outcome struct {
	Subject string `json:"subject"`
	Refused bool   `json:"refused"`
	Result  string `json:"result"` // or the reason
}

func (o outcome) json() string {
	data, _ := json.Marshal(o) // it fails for no text
	return string(logview.PlainJSON(append(data, '\n')))
}

// confirmed asks a person a question, unless yes is set. The error says that nothing was done.
func confirmed(ctx context.Context, w cli.World, yes bool, question string) error {
	if yes {
		return nil
	}
	ok, err := cli.NewAsker(w).Confirm(ctx, question)
	if err == nil && !ok {
		err = errors.New("nothing was done")
	}
	return err
}
