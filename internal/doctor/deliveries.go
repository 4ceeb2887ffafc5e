package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
)

const deliveryWindow = 3 * 24 * time.Hour

// deliveries checks how GitHub's latest attempts to deliver webhooks ended.
func (c *githubCheck) deliveries(ctx context.Context) {
	const check = "github.deliveries"
	list, err := c.api.RecentDeliveries(ctx)
	if err != nil {
		c.unreadable(check, err)
		return
	}
	arrived := map[string]bool{} // by webhook: each attempt to deliver it has its own entry in the list
	for _, d := range list {
		if d.At.Before(c.Now().Add(-deliveryWindow)) {
			break
		}
		arrived[d.GUID] = arrived[d.GUID] || d.OK
	}
	recent, failed := len(arrived), 0
	for _, ok := range arrived {
		if !ok {
			failed++
		}
	}
	if recent == 0 {
		c.add(Finding{
			Check: check, Status: Skipped, Found: "GitHub sent no webhook in the last three days.",
			Meaning: "Whether GitHub can reach errand is therefore not known.", Fix: fmt.Sprintf("Comment on an issue of a repository with the App, or redeliver the ping at %s/advanced, and run this again.", c.app.SettingsURL),
		})
		return
	}
	last := list[0]
	at := last.At.UTC().Format("2006-01-02 15:04 MST")
	if last.OK {
		c.add(Finding{Check: check, Status: OK, Found: fmt.Sprintf("The latest webhook arrived at %s; %d of the last %d failed.", at, failed, recent)})
		return
	}
	c.add(Finding{
		Check: check, Status: Failed, Found: fmt.Sprintf("GitHub could not deliver the latest webhook (%s, %s): %s; %d of the last %d failed.", last.Event, at, outcome(last), failed, recent),
		Meaning: "errand fetches such webhooks in its sweeps, minutes later.", Fix: c.fixDelivery(last.StatusCode),
	})
}

func outcome(d forge.Delivery) string {
	if d.StatusCode == 0 {
		return fmt.Sprintf("no answer (%s)", d.Status)
	}
	return fmt.Sprintf("status %d (%s)", d.StatusCode, d.Status)
}

// fixDelivery returns the remedy for a webhook that was answered with a status.
func (c *githubCheck) fixDelivery(status int) string {
	address := strings.TrimSuffix(c.PublicURL, "/") + HookPath
	if c.PublicURL == "" {
		address = "the webhook's address"
	}
	switch status {
	case 0:
		return fmt.Sprintf("Make %s reachable from the internet: check DNS, the firewall and the TLS certificate with `curl -v` from another network, which has to print 405.", address)
	case http.StatusBadRequest:
		return "Enter the secret of github.webhook_secret as the webhook's secret at " + c.app.SettingsURL + "; the answer at " + c.app.SettingsURL + "/advanced tells whether the signature is wrong."
	case http.StatusUnauthorized, http.StatusForbidden:
		return "Let the reverse proxy forward " + HookPath + " without a login of its own."
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMovedPermanently, http.StatusFound, http.StatusPermanentRedirect:
		return "Let the reverse proxy forward POST " + HookPath + " to errand's listen address, without a redirect."
	case http.StatusRequestEntityTooLarge:
		return "Let the reverse proxy accept bodies of 25 MB (nginx: `client_max_body_size 25m`)."
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "Start errand, and let the reverse proxy forward to its listen address."
	case http.StatusInternalServerError:
		return "Free space on the disk of data: errand could not store the webhook. Its log has the details."
	}
	return "See the answer at " + c.app.SettingsURL + "/advanced."
}
