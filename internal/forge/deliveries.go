package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// Delivery is an attempt of GitHub to deliver a webhook.
type Delivery struct {
	ID           int64
	GUID         string // the same for all attempts
	Event        string
	Action       string
	Installation int64
	At           time.Time
	OK           bool   // GitHub's attempt was answered with success
	Status       string // OK, or why not: such as "timed out" or "Invalid HTTP Response: 502"
	StatusCode   int    // of errand's answer, or of the proxy's; 0 if there was none
}

// WebhookSettings are the App's settings for webhooks.
type WebhookSettings struct {
	URL         string
	ContentType string // json or form
	InsecureTLS bool   // GitHub does not verify the certificate
}

// Webhook returns the App's settings for webhooks. It returns ErrNotFound if the App has no webhook.
func (f *Forge) Webhook(ctx context.Context) (WebhookSettings, error) {
	op, err := f.client.Read(ctx, 0, "read the webhook's settings", "")
	if err != nil {
		return WebhookSettings{}, err
	}
	got, _, err := op.GitHub.Apps.GetHookConfig(op.Ctx)
	if err != nil {
		return WebhookSettings{}, op.Wrap(err)
	}
	return WebhookSettings{URL: got.GetURL(), ContentType: got.GetContentType(), InsecureTLS: got.GetInsecureSSL() == "1"}, nil
}

// SetWebhookSecret sets the secret with which GitHub signs the App's webhooks from now on.
func (f *Forge) SetWebhookSecret(ctx context.Context, secret string) error {
	op, err := f.client.Write(ctx, 0, "set the webhook's secret", "")
	if err != nil {
		return err
	}
	_, _, err = op.GitHub.Apps.UpdateHookConfig(op.Ctx, &github.HookConfig{Secret: &secret})
	return op.Wrap(err)
}

// RecentDeliveries returns the latest attempts of GitHub to deliver webhooks, newest first, at most 100.
func (f *Forge) RecentDeliveries(ctx context.Context) ([]Delivery, error) {
	list, _, err := f.deliveriesPage(ctx, "")
	return list, err
}

// Deliveries returns one attempt, oldest first, to deliver each webhook since a time. Its OK tells whether any attempt since then
// succeeded. It reads at most 100 pages.
func (f *Forge) Deliveries(ctx context.Context, since time.Time) ([]Delivery, error) {
	place := map[string]int{} // in list, by GUID
	var list []Delivery       // newest first
	cursor := ""
	for range client.MaxPages {
		page, next, err := f.deliveriesPage(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if d.At.Before(since) {
				next = ""
				continue
			}
			i, seen := place[d.GUID]
			if !seen {
				place[d.GUID] = len(list)
				list = append(list, d)
				continue
			}
			list[i].OK = list[i].OK || d.OK
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	slices.Reverse(list)
	return list, nil
}

// deliveriesPage returns the page of attempts at cursor, newest first, and the cursor of the next page. An empty cursor
// means the first page, and after the last one.
func (f *Forge) deliveriesPage(ctx context.Context, cursor string) (list []Delivery, next string, err error) {
	op, err := f.client.Read(ctx, 0, "list webhook deliveries", "")
	if err != nil {
		return nil, "", err
	}
	got, resp, err := op.GitHub.Apps.ListHookDeliveries(op.Ctx, &github.ListCursorOptions{PerPage: 100, Cursor: cursor})
	if err != nil {
		return nil, "", op.Wrap(err)
	}
	for _, d := range got {
		list = append(list, Delivery{
			ID: d.GetID(), GUID: d.GetGUID(), Event: d.GetEvent(), Action: d.GetAction(), Installation: d.GetInstallationID(),
			At: d.GetDeliveredAt().Time, OK: d.GetStatus() == "OK", Status: d.GetStatus(), StatusCode: d.GetStatusCode(),
		})
	}
	return list, resp.Cursor, nil
}

// HookDelivery returns the webhook of an attempt: its event, GUID and JSON payload.
func (f *Forge) HookDelivery(ctx context.Context, id int64) (event, guid string, payload []byte, err error) {
	op, err := f.client.Read(ctx, 0, "read webhook delivery", fmt.Sprint(id))
	if err != nil {
		return "", "", nil, err
	}
	d, _, err := op.GitHub.Apps.GetHookDelivery(op.Ctx, id)
	if err != nil {
		return "", "", nil, op.Wrap(err)
	}
	event = d.GetEvent()
	for name, value := range d.GetRequest().GetHeaders() {
		if strings.EqualFold(name, "X-GitHub-Event") {
			event = value // the API appends the action to the event
		}
	}
	return event, d.GetGUID(), d.GetRequest().GetRawPayload(), nil
}

// AnswerHeader returns a header of the answer to an attempt, or "" if there was none.
func (f *Forge) AnswerHeader(ctx context.Context, id int64, name string) (string, error) {
	op, err := f.client.Read(ctx, 0, "read webhook delivery", fmt.Sprint(id))
	if err != nil {
		return "", err
	}
	d, _, err := op.GitHub.Apps.GetHookDelivery(op.Ctx, id)
	if err != nil {
		return "", op.Wrap(err)
	}
	for have, value := range d.GetResponse().GetHeaders() {
		if strings.EqualFold(have, name) {
			return value, nil
		}
	}
	return "", nil
}

// Redeliver has GitHub deliver the webhook of an attempt again, with its GUID. It returns before GitHub has done so.
func (f *Forge) Redeliver(ctx context.Context, id int64) error {
	op, err := f.client.Write(ctx, 0, "redeliver a webhook", fmt.Sprint(id))
	if err != nil {
		return err
	}
	_, _, err = op.GitHub.Apps.RedeliverHookDelivery(op.Ctx, id)
	var accepted *github.AcceptedError
	if errors.As(err, &accepted) { // the answer of success
		return nil
	}
	return op.Wrap(err)
}

// ErrNotRepeated means that GitHub accepted to deliver a webhook again, and has not yet.
var ErrNotRepeated = errors.New("GitHub has not repeated the webhook yet")

// maxRepeatPolls is the maximum number of requests for the result of a redelivery.
const maxRepeatPolls = 1000

// Repeat has GitHub deliver the webhook of an attempt again, and returns the new attempt. It asks for it at intervals of poll, and
// returns ErrNotRepeated once ctx has ended.
func (f *Forge) Repeat(ctx context.Context, first Delivery, poll time.Duration) (Delivery, error) {
	before, err := f.RecentDeliveries(ctx)
	if err != nil {
		return Delivery{}, err
	}
	if err := f.Redeliver(ctx, first.ID); err != nil {
		return Delivery{}, fmt.Errorf("have GitHub repeat the webhook %q: %w", first.Event, err)
	}
	t := time.NewTicker(poll)
	defer t.Stop()
	for range maxRepeatPolls {
		select {
		case <-ctx.Done():
			return Delivery{}, fmt.Errorf("%w: %w", ErrNotRepeated, ctx.Err())
		case <-t.C:
		}
		list, err := f.RecentDeliveries(ctx)
		if err != nil {
			if ctx.Err() != nil {
				continue
			}
			return Delivery{}, err
		}
		for _, d := range list {
			isOld := slices.ContainsFunc(before, func(b Delivery) bool { return b.ID == d.ID })
			if d.GUID == first.GUID && d.ID != first.ID && !isOld {
				return d, nil
			}
		}
	}
	return Delivery{}, ErrNotRepeated
}
