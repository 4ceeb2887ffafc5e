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

// subscriptionTransport makes calls with the token of a subscription. Where the provider refuses it, it is renewed and the call
// made again, once. A subscription that cannot be used is answered as the provider answers a key that it refuses.
type subscriptionTransport struct {
	next   http.RoundTripper
	source *subscription.Source
	api    modelapi.API
}

// maxRefusal bounds what is read of a refusal that is not passed on, so that its connection can be used again.
const maxRefusal = 16 << 10

// RoundTrip implements http.RoundTripper.
func (s subscriptionTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := s.source.Token(req.Context())
	switch {
	case errors.Is(err, subscription.ErrRefused):
		return unauthorized(req), nil
	case err != nil:
		return nil, fmt.Errorf("get the subscription's token: %w", err)
	}
	answer, err := s.do(req, token, req.Body)
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
			return nil, fmt.Errorf("make a call again: %w", err)
		}
	}
	return s.do(req, token, body)
}

// do makes a call with a token. The request stays as it is.
func (s subscriptionTransport) do(req *http.Request, token string, body io.ReadCloser) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Body = body
	out.Header.Set("Authorization", "Bearer "+token)
	if s.api == modelapi.Anthropic {
		out.Header.Set("Anthropic-Beta", withBeta(out.Header.Values("Anthropic-Beta")))
	}
	return s.next.RoundTrip(out)
}

// oauthBeta is what has Anthropic's API take the token of a subscription.
const oauthBeta = "oauth-2025-04-20"

// withBeta adds it to what a program asks for.
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

// subscriptionRefused says that a provider takes a subscription no more, and what the operator has to do; nothing for a key.
func (u Provider) subscriptionRefused(name string) (detail, hint string) {
	if u.Subscription == nil {
		return "", ""
	}
	detail = fmt.Sprintf("the model's provider `%s` refuses errand's subscription", name)
	if u.Subscription.Login() == "" {
		return detail, fmt.Sprintf("The operator has to make another token (`claude setup-token`), set it at `models.%s.subscription.token` and restart errand; the task goes on by itself then.", name)
	}
	return detail, fmt.Sprintf("The operator has to log in again and put the new login where `models.%s.subscription.login` says; nothing need be restarted, and the task goes on by itself then.", name)
}

// unauthorized is an answer to a call that was not made.
func unauthorized(req *http.Request) *http.Response {
	if req.Body != nil {
		_ = req.Body.Close() // as every RoundTripper does
	}
	return &http.Response{
		Status: "401 Unauthorized", StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}
