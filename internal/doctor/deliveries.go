package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/forge"
)

const deliveryWindow = 3 * 24 * time.Hour

// loggedWebhook checks the settings of a webhook that errand reads from GitHub's log. err is set if there is none.
func (c *githubCheck) loggedWebhook(hook forge.WebhookSettings, err error) {
	f := Finding{Check: "github.webhook", Status: OK, Found: "errand reads webhooks from GitHub's log; GitHub can send them nowhere."}
	switch address, problem := url.Parse(hook.URL); {
	case err != nil || hook.URL == "":
		f.Status, f.Found = Failed, "The App has no webhook, so GitHub's log has none that errand could read."
		f.Meaning = "errand notices what people do only in its sweeps, up to a quarter of an hour later."
		f.Fix = fmt.Sprintf("Open %s, tick “Active” under Webhook, and enter %s, a name that cannot exist.", c.app.SettingsURL, handlers.NoHook)
	case problem != nil || !strings.HasSuffix(address.Hostname(), ".invalid"):
		f.Status, f.Found = Warning, fmt.Sprintf("errand reads webhooks from GitHub's log, but GitHub also sends them to %s.", hook.URL)
		f.Meaning = "Whoever answers there gets the texts of your issues."
		f.Fix = fmt.Sprintf("Open %s and enter %s, a name that cannot exist. If it is errand's own address, and GitHub can reach it, set github.webhooks to push instead.", c.app.SettingsURL, handlers.NoHook)
	}
	c.add(f)
}

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
	if c.ReadsWebhooks {
		c.add(Finding{Check: check, Status: OK, Found: fmt.Sprintf("The latest webhook in GitHub's log is of %s.", last.At.UTC().Format("2006-01-02 15:04 MST"))})
		return
	}
	at := last.At.UTC().Format("2006-01-02 15:04 MST")
	if last.OK {
		c.add(Finding{Check: check, Status: OK, Found: fmt.Sprintf("The latest webhook arrived at %s; %d of the last %d failed.", at, failed, recent)})
		return
	}
	f := Finding{
		Check: check, Status: Failed, Found: fmt.Sprintf("GitHub could not deliver the latest webhook (%s, %s): %s; %d of the last %d failed.", last.Event, at, outcome(last), failed, recent),
		Meaning: "errand fetches such webhooks in its sweeps, minutes later.", Fix: c.fixDelivery(last.StatusCode),
	}
	if c.Stopped && isUnreached(last.StatusCode) {
		f.Found = "errand does not run. " + f.Found
		f.Meaning = "errand does nothing. When it starts, it fetches the webhooks of the last three days that it missed."
		f.Fix = "Start errand: `systemctl start errand`."
	}
	f.Fix += fmt.Sprintf(" Then open %s/advanced, redeliver that webhook, and run this again.", c.app.SettingsURL)
	c.add(f)
}

// isUnreached reports whether a webhook was answered by nobody, or by a proxy that did not reach errand.
func isUnreached(status int) bool {
	return status == 0 || status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

func outcome(d forge.Delivery) string {
	if d.StatusCode == 0 {
		return fmt.Sprintf("no answer (%s)", d.Status)
	}
	return fmt.Sprintf("status %d (%s)", d.StatusCode, d.Status)
}

// fixDelivery returns the remedy for a webhook that was answered with a status.
func (c *githubCheck) fixDelivery(status int) string {
	address := strings.TrimSuffix(c.PublicURL, "/") + handlers.HookPath
	if c.PublicURL == "" {
		address = "the webhook's address"
	}
	switch status {
	case 0:
		return fmt.Sprintf("Make %s reachable from the internet: check DNS, the firewall and the TLS certificate with `curl -v` from another network, which has to print 405.", address)
	case http.StatusBadRequest:
		return "Enter the secret of github.webhook_secret as the webhook's secret at " + c.app.SettingsURL + ", and save."
	case http.StatusUnauthorized, http.StatusForbidden:
		return "Let the reverse proxy forward " + handlers.HookPath + " without a login of its own."
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMovedPermanently, http.StatusFound, http.StatusPermanentRedirect:
		return "Let the reverse proxy forward POST " + handlers.HookPath + " to errand's listen address, without a redirect."
	case http.StatusRequestEntityTooLarge:
		return "Let the reverse proxy accept bodies of 25 MB (nginx: `client_max_body_size 25m`)."
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "Let the reverse proxy forward to errand's listen address, where errand runs."
	case http.StatusInternalServerError:
		return "Free space on the disk of data: errand could not store the webhook. Its log has the details."
	}
	return "See the answer at " + c.app.SettingsURL + "/advanced."
}
