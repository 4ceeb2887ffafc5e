package simgithub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

func appRoutes() []route {
	return []route{
		{"GET", "/app", onlyApp(func(c *call) (any, error) { return c.s.json.fullApp(), nil })},
		{"POST", "/app-manifests/{code}/conversions", convertManifest},
		{"GET", "/app/installations", onlyApp(listInstallations)},
		{"GET", "/app/installations/{id}", onlyApp(getInstallation)},
		{"POST", "/app/installations/{id}/access_tokens", onlyApp(createToken)},
		{"GET", "/app/hook/config", onlyApp(func(c *call) (any, error) { return c.s.json.hookConfig(), nil })},
		{"PATCH", "/app/hook/config", onlyApp(editHookConfig)},
		{"GET", "/app/hook/deliveries", onlyApp(listDeliveries)},
		{"GET", "/app/hook/deliveries/{id}", onlyApp(getDelivery)},
		{"POST", "/app/hook/deliveries/{id}/attempts", onlyApp(redeliver)},
		{"GET", "/repos/{owner}/{repo}/installation", onlyApp(repoInstallation)},
		{"GET", "/users/{login}/installation", onlyApp(accountInstallation)},
		{"GET", "/orgs/{login}/installation", onlyApp(organizationInstallation)},
		{"GET", "/installation/repositories", installationRepos},
		{"DELETE", "/installation/token", revokeToken},
	}
}

// onlyApp returns an error unless the request has the App's JWT.
func onlyApp(h handler) handler {
	return func(c *call) (any, error) {
		if !c.jwt {
			return nil, &Error{Status: http.StatusUnauthorized, Message: "A JSON web token could not be decoded"}
		}
		return h(c)
	}
}

func (j encoder) fullApp() obj {
	o := j.app()
	o["installations_count"] = len(j.s.installs)
	return o
}

func listInstallations(c *call) (any, error) {
	return each(page(c, c.s.installs), c.s.json.installation), nil
}

func (c *call) theInstallation() (*Installation, error) {
	for _, in := range c.s.installs {
		if in.ID == c.id("id") {
			return in, nil
		}
	}
	return nil, errNotFound()
}

func getInstallation(c *call) (any, error) {
	in, err := c.theInstallation()
	if err != nil {
		return nil, err
	}
	return c.s.json.installation(in), nil
}

func repoInstallation(c *call) (any, error) {
	r, ok := c.s.repos[repoKey(c.full())]
	if !ok {
		return nil, errNotFound()
	}
	for _, in := range c.s.installs {
		if in.has(r.ID) {
			return c.s.json.installation(in), nil
		}
	}
	return nil, errNotFound()
}

func accountInstallation(c *call) (any, error) {
	for _, in := range c.s.installs {
		if strings.EqualFold(in.Account, c.vars["login"]) {
			return c.s.json.installation(in), nil
		}
	}
	return nil, errNotFound()
}

func organizationInstallation(c *call) (any, error) {
	if u := c.s.account(c.vars["login"]); u == nil || u.Type != TypeOrg {
		return nil, errNotFound()
	}
	return accountInstallation(c)
}

func createToken(c *call) (any, error) {
	in, err := c.theInstallation()
	if err != nil {
		return nil, err
	}
	if in.Suspended {
		return nil, errForbidden("This installation has been suspended")
	}
	var req tokenRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	cred, t, err := c.s.auth.mint(in, req)
	if err != nil {
		return nil, err
	}
	o := obj{
		"token": cred, "expires_at": stamp(t.expires), "permissions": t.perms, "repository_selection": "selected",
	}
	if t.repos != nil {
		list := []any{}
		for _, id := range t.repos {
			if r, ok := c.s.find.repo(id); ok {
				list = append(list, c.s.json.repo(r))
			}
		}
		o["repositories"] = list
	}
	return c.created(o)
}

func revokeToken(c *call) (any, error) {
	if !c.viaApp() {
		return nil, errNeedAuth()
	}
	for cred, t := range c.s.tokens {
		if t == c.tok {
			delete(c.s.tokens, cred)
		}
	}
	return nil, nil
}

func installationRepos(c *call) (any, error) {
	if !c.viaApp() {
		return nil, errForbidden("You must authenticate with an installation access token in order to list repositories for an installation.")
	}
	var list []*Repo
	for _, id := range c.tok.install.RepoIDs {
		if r, ok := c.s.find.repo(id); ok && c.granted(r) {
			list = append(list, r)
		}
	}
	total := len(list)
	return obj{
		"total_count": total, "repository_selection": "selected", "repositories": each(page(c, list), c.listedRepoJSON),
	}, nil
}

func (j encoder) hookConfig() obj {
	o := obj{"content_type": "json", "insecure_ssl": "0", "secret": "********"}
	if j.s.app.WebhookURL != "" { // the published schema wants an address or nothing
		o["url"] = j.s.app.WebhookURL
	}
	return o
}

func editHookConfig(c *call) (any, error) {
	var req struct {
		URL    *string `json:"url"`
		Secret *string `json:"secret"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.URL != nil {
		if u, err := url.Parse(*req.URL); err != nil || u.Host == "" {
			return nil, errInvalid("Hook", "url", "invalid")
		}
		c.s.app.WebhookURL = *req.URL
	}
	if req.Secret != nil {
		c.s.app.WebhookSecret = *req.Secret
	}
	return c.s.json.hookConfig(), nil
}

// deliveryLife is the time for which GitHub keeps deliveries.
const deliveryLife = 3 * 24 * time.Hour

func listDeliveries(c *call) (any, error) {
	oldest := c.s.cfg.Now().Add(-deliveryLife)
	var list []delivery.Delivery
	for _, d := range slices.Backward(c.s.hooks.Log()) {
		failed := d.StatusCode >= 400 && d.StatusCode < 600
		if d.DeliveredAt.Before(oldest) || c.query("status") == "failure" && !failed ||
			c.query("status") == "success" && d.Status != "OK" {
			continue
		}
		list = append(list, d)
	}
	start := 0
	if cursor := c.query("cursor"); cursor != "" {
		start = slices.IndexFunc(list, func(d delivery.Delivery) bool { return "v1_"+itoa(d.ID) == cursor })
		if start < 0 {
			return nil, errUnprocessable("Invalid cursor")
		}
	}
	list = list[start:]
	if per := pageSize(c); len(list) > per {
		u := *c.r.URL
		v := u.Query()
		v.Set("cursor", "v1_"+itoa(list[per].ID))
		u.RawQuery = v.Encode()
		c.header.Set("Link", "<"+c.s.base+u.RequestURI()+`>; rel="next"`)
		list = list[:per]
	}
	return each(list, deliveryJSON), nil
}

func deliveryJSON(d delivery.Delivery) obj {
	o := obj{
		"id": d.ID, "guid": d.GUID, "delivered_at": d.DeliveredAt.Format(time.RFC3339Nano), "redelivery": d.Redelivery,
		"duration": d.Duration.Seconds(), "status": d.Status, "status_code": d.StatusCode, "event": d.Event,
		"action": orNull(d.Action), "installation_id": d.Installation, "repository_id": nil, "throttled_at": nil,
	}
	if d.Repository != 0 {
		o["repository_id"] = d.Repository
	}
	return o
}

func getDelivery(c *call) (any, error) {
	d := c.s.hooks.Find(c.id("id"))
	if d == nil {
		return nil, errNotFound()
	}
	o := deliveryJSON(*d)
	o["url"] = d.URL
	o["request"] = obj{"headers": flat(d.ReqHeader), "payload": json.RawMessage(d.Payload)}
	o["response"] = obj{"headers": flat(d.RespHeader), "payload": d.RespBody}
	return o, nil
}

// flat returns headers with one value per name, as in GitHub's log.
func flat(h http.Header) obj {
	o := obj{}
	for k := range h {
		o[k] = h.Get(k)
	}
	return o
}

func redeliver(c *call) (any, error) {
	if !redeliverHook(c.s, c.id("id")) {
		return nil, errNotFound()
	}
	c.status = http.StatusAccepted
	return obj{}, nil
}
