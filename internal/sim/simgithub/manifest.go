package simgithub

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

// manifestLife is the time within which the code of an App that was created from a manifest can be exchanged.
const manifestLife = time.Hour

// Manifest is the description of an App from which GitHub creates it. GitHub has no other keys.
type Manifest struct {
	Name           string `json:"name"`
	URL            string `json:"url"`
	HookAttributes *struct {
		URL    string `json:"url"`
		Active *bool  `json:"active"`
	} `json:"hook_attributes"`
	RedirectURL        string            `json:"redirect_url"`
	CallbackURLs       []string          `json:"callback_urls"`
	SetupURL           string            `json:"setup_url"`
	Description        string            `json:"description"`
	Public             bool              `json:"public"`
	DefaultEvents      []string          `json:"default_events"`
	DefaultPermissions map[string]string `json:"default_permissions"`
	RequestOAuth       bool              `json:"request_oauth_on_install"`
	SetupOnUpdate      bool              `json:"setup_on_update"`
}

// ParseManifest decodes and checks a manifest as GitHub's page does.
func ParseManifest(text string) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, errUnprocessable("Invalid manifest: %v", err)
	}
	address := func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	}
	switch {
	case strings.TrimSpace(m.Name) == "" || len(m.Name) > 34 || slugOf(m.Name) == "":
		return m, errInvalid("Integration", "name", "invalid")
	case !address(m.URL):
		return m, errInvalid("Integration", "url", "invalid")
	case !address(m.RedirectURL):
		return m, errInvalid("Integration", "redirect_url", "invalid")
	case m.HookAttributes != nil && !address(m.HookAttributes.URL):
		return m, errInvalid("Hook", "url", "invalid")
	}
	for _, callback := range m.CallbackURLs {
		if !address(callback) || len(m.CallbackURLs) > 10 {
			return m, errInvalid("Integration", "callback_urls", "invalid")
		}
	}
	for _, event := range m.DefaultEvents {
		if !slices.Contains(withDefaults(Config{}).Events, event) {
			return m, errUnprocessable("Default events unsupported: %s", event)
		}
	}
	for name, level := range m.DefaultPermissions {
		if withDefaults(Config{}).Permissions[name] == "" || levelRank(level) == 0 {
			return m, errUnprocessable("Default permission records resource is not included in the list: %s", name)
		}
	}
	return m, nil
}

// ReadManifest is ParseManifest of the Enterprise Server that is simulated: it refuses events that its version does not know.
func (s *Sim) ReadManifest(text string) (Manifest, error) {
	m, err := ParseManifest(text)
	if err != nil {
		return m, err
	}
	for _, event := range m.DefaultEvents {
		if event == "sub_issues" || event == "issue_dependencies" && semver.Compare("v"+s.cfg.EnterpriseVersion, "v3.19") < 0 {
			return m, errUnprocessable("Default events unsupported: %s", event)
		}
	}
	return m, nil
}

// slugOf returns the part of an App's address that GitHub makes from its name.
func slugOf(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// CreateApp creates the App of a manifest, owned by an account, and returns the code for its credentials. It replaces the simulator's
// App, whose installations end. GitHub sends a ping to the new webhook.
func (s *Sim) CreateApp(owner string, m Manifest) (code string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.users[owner]; !ok {
		return "", errNotFound()
	}
	slug := slugOf(m.Name)
	if s.app.Slug == slug {
		return "", errInvalid("Integration", "name", "already_exists")
	}
	key := s.cfg.Key
	if key == nil {
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return "", fmt.Errorf("create the App's key: %w", err)
		}
	}
	id := s.newID()
	bot := s.addUser(slug+"[bot]", TypeBot)
	s.key, s.installs = key, nil
	s.app = App{
		ID: id, NodeID: nodeID("A", id), Slug: slug, Name: m.Name, ClientID: "Iv23li" + randomHex(7), Owner: owner,
		ClientSecret: randomHex(20), CallbackURLs: m.CallbackURLs,
		PEM:           pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		WebhookSecret: randomHex(20), Permissions: maps.Clone(m.DefaultPermissions), Events: slices.Clone(m.DefaultEvents),
		BotLogin: bot.Login, BotID: bot.ID,
	}
	if s.app.Permissions == nil {
		s.app.Permissions = map[string]string{}
	}
	s.app.Permissions["metadata"] = "read" // every App has it
	if h := m.HookAttributes; h != nil && (h.Active == nil || *h.Active) {
		s.app.WebhookURL = h.URL
		s.session(s.users[owner]).webhooks().ping()
	}
	code = randomHex(20)
	s.codes = map[string]time.Time{code: s.cfg.AuthNow().Add(manifestLife)}
	return code, nil
}

// ping sends the event that GitHub sends for a new webhook.
func (w webhooks) ping() {
	s := w.x.s
	w.send(delivery.Delivery{Event: "ping"}, obj{
		"zen": "Keep it logically awesome.", "hook_id": s.app.ID,
		"hook": obj{
			"type": "App", "id": s.app.ID, "name": "web", "active": true, "events": s.app.Events, "app_id": s.app.ID,
			"config":     obj{"content_type": "json", "insecure_ssl": "0", "url": s.app.WebhookURL, "secret": "********"},
			"created_at": stamp(s.now()), "updated_at": stamp(s.now()), "deliveries_url": s.json.api("/app/hook/deliveries"),
		},
	})
}

// convertManifest gives out the credentials of a created App, once.
func convertManifest(c *call) (any, error) {
	expires, ok := c.s.codes[c.vars["code"]]
	if !ok || !c.s.cfg.AuthNow().Before(expires) {
		return nil, errNotFound()
	}
	delete(c.s.codes, c.vars["code"])
	o := c.s.json.app()
	o["client_secret"], o["webhook_secret"], o["pem"] = c.s.app.ClientSecret, c.s.app.WebhookSecret, string(c.s.app.PEM)
	return c.created(o)
}
