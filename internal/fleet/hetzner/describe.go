package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// maxClockOff is the clock difference that the margin before the end of a paid hour covers.
const maxClockOff = 30 * time.Second

// Describe checks the token and returns which candidates can be ordered, with notes for the operator.
func (p *Provider) Describe(ctx context.Context) (fleet.Description, error) {
	out := fleet.Description{Provider: p.Name(), Kind: "cloud", Isolation: fleet.IsolationVM}
	offers, err := p.Offers(ctx)
	if errors.Is(err, fleet.ErrUnauthorized) {
		out.Notes = append(out.Notes, "The API refuses `hetzner.token`: create a token with read and write permission in the project's settings.")
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("describe: %w", err)
	}
	for _, c := range p.cfg.Candidates {
		choice, note := choiceOf(c, offers)
		out.Choices = append(out.Choices, choice)
		if note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	if slices.ContainsFunc(p.cfg.SSHFrom, func(from string) bool { return strings.HasSuffix(from, "/0") }) {
		out.Notes = append(out.Notes, "VMs accept SSH from everywhere, with errand's key only: set errand's address in `hetzner.ssh_from`.")
	}
	if off := p.budget.clockSkew().Round(time.Second); off.Abs() > maxClockOff {
		out.Notes = append(out.Notes, fmt.Sprintf("The clock of this host differs from Hetzner's by %s, so paid hours are miscalculated. Set it by NTP.", off.Abs()))
	}
	if p.cfg.Egress == EgressTether {
		out.Notes = append(out.Notes, "After their first boot, VMs reach other hosts only through errand.")
	}
	return out, nil
}

// TokenProblem returns a sentence if the API refuses the token, or if the token may only read. To find that out it asks for an SSH key without a
// name and a key, which the API cannot create. If the token may read and the API does not say whether it may write, the error is fleet.ErrUnknownOutcome.
func (p *Provider) TokenProblem(ctx context.Context) (string, error) { return p.tokenProblem(ctx) }

// TryToken is [Provider.TokenProblem] before there is a Provider. It needs the token, the endpoint and the version.
func TryToken(ctx context.Context, cfg Config) (string, error) { return newAPI(cfg).tokenProblem(ctx) }

func (a *api) tokenProblem(ctx context.Context) (string, error) {
	_, _, err := call[nothing](ctx, a, request{method: http.MethodGet, path: "/ssh_keys", query: url.Values{"per_page": {"1"}}})
	if errors.Is(err, fleet.ErrUnauthorized) {
		return "Hetzner refuses hetzner.token.", nil
	}
	if err != nil {
		return "", fmt.Errorf("read with the token: %w", err)
	}
	_, _, err = callOnce[nothing](ctx, a, request{method: http.MethodPost, path: "/ssh_keys", body: schema.SSHKeyCreateRequest{}})
	switch {
	case errors.Is(err, fleet.ErrUnauthorized):
		return "hetzner.token may only read.", nil
	case errors.Is(err, fleet.ErrUnknownOutcome), errors.Is(err, fleet.ErrLimited):
		return "", fmt.Errorf("try to write with the token: %w", err)
	}
	return "", nil // any other refusal is about the key
}

// ImageProblem returns a sentence if VMs cannot be created from the configured image, or soon cannot.
func (p *Provider) ImageProblem(ctx context.Context) (string, error) {
	name := p.cfg.Image
	var found []schema.Image
	var err error
	if _, perr := strconv.ParseInt(name, 10, 64); perr == nil {
		var img schema.Image
		img, err = p.images.byID(ctx, name)
		found = []schema.Image{img}
	} else {
		found, err = listAll(ctx, p.images.api, request{method: http.MethodGet, path: "/images", query: url.Values{"name": {name}, "include_deprecated": {"true"}}},
			func(r schema.ImageListResponse) []schema.Image { return r.Images }, func(i schema.Image) int64 { return i.ID })
	}
	switch {
	case errors.Is(err, fleet.ErrNotFound) || err == nil && len(found) == 0:
		return fmt.Sprintf("There is no image %s.", name), nil
	case err != nil:
		return "", fmt.Errorf("read image %s: %w", name, err)
	case found[0].Status != string(hcloud.ImageStatusAvailable):
		return fmt.Sprintf("The image %s has the status %s.", name, found[0].Status), nil
	case found[0].Deprecated != nil && !found[0].Deprecated.IsZero():
		return fmt.Sprintf("The image %s is deprecated since %s; it will be removed.", name, found[0].Deprecated.UTC().Format(time.DateOnly)), nil
	}
	return "", nil
}

// choiceOf returns a candidate with its offer, and a sentence if it is not sold and can therefore never be ordered.
func choiceOf(c fleet.Offer, offers []fleet.Offer) (choice fleet.Choice, note string) {
	choice.Candidate = fleet.Candidate{Type: c.Type, Location: c.Location}
	known := false
	for _, o := range offers {
		known = known || o.Type == c.Type
		if o.Type == c.Type && o.Location == c.Location {
			choice.Offer, choice.Sold = o, true
			return choice, ""
		}
	}
	note = fmt.Sprintf("%s in %s: this type is not sold there; remove it from `hetzner.candidates`.", c.Type, c.Location)
	if !known {
		note = fmt.Sprintf("%s in %s: there is no server type of this name; correct `hetzner.candidates`.", c.Type, c.Location)
	}
	return choice, note
}
