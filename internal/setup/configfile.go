package setup

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/errand-bot/errand/internal/agent/programs"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/durable"
)

//go:embed config.yml.tmpl
var configText string

// quoted formats a value as YAML on one line. JSON is YAML.
func quoted(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// draft is the configuration as text.
func (r *run) draft() ([]byte, error) {
	var proxies []string
	for one := range strings.SplitSeq(r.answer("trusted_proxies"), ",") {
		if one = strings.TrimSpace(one); one != "" {
			proxies = append(proxies, one)
		}
	}
	if r.publicURL() == "" || r.servesTLS() {
		proxies = nil
	}
	app := SavedApp{}
	if r.progress.App != nil {
		app = *r.progress.App
	}
	programsDir, script := "", ""
	if r.installsProgram() && !slices.Contains(r.skip, "program") {
		programsDir = r.path(programsName)
	} else if q := questionOf("agent_program"); q.applies(r) && r.answer(q.Key) == install {
		script = "    " + strings.ReplaceAll(strings.TrimSpace(programs.Script(r.answer("agent"))), "\n", "\n    ")
	}
	_, noSecret := os.Stat(r.path("client-secret"))
	var b bytes.Buffer
	err := template.Must(template.New("config").Funcs(template.FuncMap{"yaml": quoted, "file": func(name string) (string, error) {
		return quoted("file:" + r.path(name))
	}}).Parse(configText)).Execute(&b, map[string]any{
		"Data": r.answer("data"), "Listen": r.answer("listen"), "PublicURL": r.publicURL(), "Proxies": proxies, "ACME": r.servesTLS(),
		"GitHub": strings.TrimSuffix(r.answer("github"), "/"), "App": app, "Label": r.answer("label"), "Assignee": r.answer("assignee"),
		"Agent": r.answer("agent"), "ModelName": registry.APIOf(r.answer("agent")), "ModelURL": strings.TrimSuffix(r.answer("model_url"), "/"),
		"CanSignIn": noSecret == nil && r.publicURL() != "", "Subscription": r.subscribed(), "VMs": r.answer("vms"), "Hetzner": config.ProviderHetzner,
		"Programs": programsDir, "Bin": programs.Bin(r.path(programsName)), "Script": script,
	})
	if err != nil {
		return nil, fmt.Errorf("write the text of the configuration: %w", err)
	}
	return b.Bytes(), nil
}

// writeConfig writes the configuration. With Options.Force it keeps the old one beside it.
func (r *run) writeConfig(context.Context) error {
	if err := r.makeSecret("admin-token"); err != nil {
		return err
	}
	text, err := r.draft()
	if err != nil {
		return err
	}
	cfg, err := config.Parse(text, r.Lookup)
	if err != nil {
		return fmt.Errorf("the answers make no valid configuration:\n%w", err)
	}
	path := r.configFile()
	switch _, err := os.Lstat(path); {
	case err == nil && !r.opts.Force:
		return fmt.Errorf("%s exists: move it away, or replace it with --force", path)
	case err == nil:
		if err := r.keepOld(path, 0o600); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	r.cfg, r.loaded, r.rewritten = cfg, true, true
	r.say("Wrote %s. The token for the pages is in %s.\n", path, r.path("admin-token"))
	return nil
}

// keepOld copies a file that is about to be replaced.
func (r *run) keepOld(path string, mode fs.FileMode) error {
	text, err := os.ReadFile(path)
	old := ""
	if err == nil {
		old, err = r.oldName(path)
	}
	if err == nil {
		err = durable.WriteFile(old, text, mode)
	}
	if err != nil {
		return fmt.Errorf("keep the old %s: %w", filepath.Base(path), err)
	}
	r.say("The old %s is kept as %s.\n", filepath.Base(path), old)
	return nil
}

// maxOld is how many old files of a name can have the same time.
const maxOld = 100

// oldName returns a name for the copy of a file that no other file has, even if several are made within a second.
func (r *run) oldName(path string) (string, error) {
	name := fmt.Sprintf("%s.%s", path, r.Now().UTC().Format("20060102-150405"))
	for n := range maxOld {
		old := name + ".old"
		if n > 0 {
			old = fmt.Sprintf("%s-%d.old", name, n+1)
		}
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			return old, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s.old exists, and %d more of the same time", name, maxOld-1)
}
