package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// usualOutput is how many tokens of output a call waits for, rather than have its answer bounded to fewer, while other calls in
// flight may leave more.
const usualOutput = 8 << 10

// minimumCost is what a call takes at least, with so many tokens of output or as many as it asks for: nothing for a stream, which
// is cut where a cap is reached, and all of it where its output cannot be bounded.
func (c *call) minimumCost(output int64) state.Money {
	if !c.billable || c.request.Stream {
		return state.Money{}
	}
	u := c.request.Usage
	if c.request.CanLimitOutput() {
		u.Output = min(u.Output, max(output, c.request.MinOutput))
	}
	m, _ := c.g.price(c.up, u)
	return m
}

// outputLimit returns to how many tokens the output of a call is to be bounded so that it costs no more than is left; 0 if it
// does not anyway.
func (c *call) outputLimit(left state.Left) int64 {
	if !c.billable || c.request.Stream || !c.request.CanLimitOutput() {
		return 0
	}
	input := c.request.Usage
	input.Output = 0
	cost, _ := c.g.price(c.up, input)
	most := min(c.request.MaxOutput, left.Tokens-cost.Tokens())
	if price, _ := c.g.cfg.Prices.Find(c.request.Model); !c.free() && price.Output > 0 {
		price = price.For(input)
		most = int64(min(float64(most), float64(left.MicroUSD-cost.MicroUSD)/price.Output))
	}
	if most >= c.request.MaxOutput {
		return 0
	}
	return max(most, 1)
}

// setBody gives a request a body of several parts.
func setBody(r *http.Request, parts [][]byte) {
	r.ContentLength = 0
	for _, p := range parts {
		r.ContentLength += int64(len(p))
	}
	r.GetBody = func() (io.ReadCloser, error) {
		all := make([]io.Reader, len(parts))
		for i, p := range parts {
			all[i] = bytes.NewReader(p)
		}
		return io.NopCloser(io.MultiReader(all...)), nil
	}
	r.Body, _ = r.GetBody() // which never fails
}

// withoutUsageOption makes a call again without asking for usage where the provider refuses the call for that: some servers say at
// the end of every stream what it used, and know no option for it.
type withoutUsageOption struct {
	next  http.RoundTripper
	parts [][]byte // of the body without the option
}

// RoundTrip implements http.RoundTripper.
func (u withoutUsageOption) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := u.next.RoundTrip(req)
	if err != nil || answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusUnprocessableEntity {
		return answer, err
	}
	head, err := io.ReadAll(io.LimitReader(answer.Body, modelapi.MaxErrorBody))
	if err != nil || !strings.Contains(string(head), "stream_options") {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), answer.Body), answer.Body}
		return answer, nil // a body that cannot be read fails again
	}
	_ = answer.Body.Close() // nothing more of it is wanted
	again := req.Clone(req.Context())
	setBody(again, u.parts)
	return u.next.RoundTrip(again)
}
