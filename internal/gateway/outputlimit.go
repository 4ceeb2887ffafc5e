package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// usualOutput is the output limit in tokens below which a call waits for earlier ones rather than be limited to less.
const usualOutput = 8 << 10

// minimumCost returns the cost of a call with output tokens of output, or fewer if it requests fewer. It is zero for a
// stream, which is ended at a cap, and the estimated cost for a call whose output cannot be limited.
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

// outputLimit returns the number of tokens to which the call's output is limited so that its cost stays within the
// budget left, or 0 if no limit is needed.
func (c *call) outputLimit(left state.Remaining) int64 {
	if !c.billable || c.request.Stream || !c.request.CanLimitOutput() {
		return 0
	}
	input := c.request.Usage
	input.Output = 0
	cost, _ := c.g.price(c.up, input)
	most := min(c.request.MaxOutput, left.Tokens-cost.Tokens())
	if price, _ := c.g.cfg.Prices.Find(c.request.Model); !c.isFree() && price.Output > 0 {
		price = price.For(input)
		most = int64(min(float64(most), float64(left.MicroUSD-cost.MicroUSD)/price.Output))
	}
	if most >= c.request.MaxOutput {
		return 0
	}
	return max(most, 1)
}

// setBody sets a body of several parts.
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
	r.Body, _ = r.GetBody() // never fails
}

// withoutUsageOption repeats a call without the option that requests usage if the provider refuses it because of the
// option: some servers report usage at the end of every stream and do not know the option.
type withoutUsageOption struct {
	next  http.RoundTripper
	parts [][]byte // the body without the option
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
		return answer, nil // reading the body returns the error again
	}
	_ = answer.Body.Close() // replaced by the next answer
	repeated := req.Clone(req.Context())
	setBody(repeated, u.parts)
	return u.next.RoundTrip(repeated)
}
