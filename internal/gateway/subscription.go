package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/subscription"
)

// subscriptionTransport makes calls with the token of a subscription. If the provider refuses the token, it renews it
// and repeats the call once. A subscription that cannot be used gets the same answer as a refused key.
type subscriptionTransport struct {
	next   http.RoundTripper
	source *subscription.Source
	api    modelapi.API
}

// maxRefusal limits how much is read of an answer that is not passed on, to reuse its connection.
const maxRefusal = 16 << 10

// RoundTrip implements http.RoundTripper.
func (s subscriptionTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := s.source.Token(req.Context())
	switch {
	case errors.Is(err, subscription.ErrRefused):
		return newUnauthorizedResponse(req), nil
	case err != nil:
		return nil, fmt.Errorf("get the subscription's token: %w", err)
	}
	answer, err := s.sendWithToken(req, token, req.Body)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return answer, err
	}
	token, err = s.source.Renew(req.Context(), token)
	if errors.Is(err, subscription.ErrRefused) {
		return answer, nil
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxRefusal) // best effort
	_ = answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("renew the subscription's token: %w", err)
	}
	body := req.Body
	if req.GetBody != nil {
		if body, err = req.GetBody(); err != nil {
			return nil, fmt.Errorf("repeat a model call: %w", err)
		}
	}
	return s.sendWithToken(req, token, body)
}

// sendWithToken makes a call with a token. It does not change the request.
func (s subscriptionTransport) sendWithToken(req *http.Request, token string, body io.ReadCloser) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Body = body
	out.Header.Set("Authorization", "Bearer "+token)
	if s.api == modelapi.Anthropic {
		out.Header.Set("Anthropic-Beta", withBeta(out.Header.Values("Anthropic-Beta")))
	}
	return s.next.RoundTrip(out)
}

// oauthBeta is the beta feature with which Anthropic's API accepts the token of a subscription.
const oauthBeta = "oauth-2025-04-20"

// withBeta adds oauthBeta to the beta features that a program requests.
func withBeta(values []string) string {
	var all []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	if !slices.Contains(all, oauthBeta) {
		all = append(all, oauthBeta)
	}
	return strings.Join(all, ",")
}

// subscriptionRefused returns the texts for people if the provider refuses the subscription, or empty ones if it has a
// key instead.
func (u Provider) subscriptionRefused(name string) (detail, hint string) {
	if u.Subscription == nil {
		return "", ""
	}
	detail = fmt.Sprintf("the model's provider `%s` refuses errand's subscription", name)
	if u.Subscription.Login() == "" {
		return detail, fmt.Sprintf("The operator has to create another token (`claude setup-token`), set it at `models.%s.subscription.token` "+
			"and restart errand; the task then continues automatically.", name)
	}
	return detail, fmt.Sprintf("The operator has to log in again and put the new login at the path in `models.%s.subscription.login`, "+
		"without a restart; the task then continues automatically.", name)
}

// newUnauthorizedResponse returns the answer to a call that was not made.
func newUnauthorizedResponse(req *http.Request) *http.Response {
	if req.Body != nil {
		_ = req.Body.Close() // required of a RoundTripper
	}
	return &http.Response{
		Status: "401 Unauthorized", StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}
