package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// An instruction is something that advice tells a person to do. The person knows nothing but the advice, and what the world shows: the pages of
// GitHub and of the providers, and the files.
type instruction struct {
	pattern string
	do      func(c *clinic, advice []string)
}

// instructions are all that a person of these tests understands, in the order in which they are carried out: files first, then commands and clicks,
// then errand's start, and last what only works with a running errand.
func instructions() []instruction {
	return slices.Concat(fileInstructions(), worldInstructions(), teamInstructions(), []instruction{
		{"(?i)`systemctl (?:re)?start errand`", func(c *clinic, _ []string) { c.restart() }},
		{"restart errand[,.]", func(c *clinic, _ []string) {
			if c.proxied.Load() != nil {
				c.restart()
			}
		}},
		{"`((?:cd [^`]*)?errand (?:backup|restore|resume)[^`]*)`", func(c *clinic, advice []string) { c.shell(advice[1]) }},
		{"Then open (\\S+)/advanced, redeliver that webhook", func(c *clinic, _ []string) {
			sent := c.github.Deliveries()
			c.webhook(c.broken.Load(), func() { c.github.Redeliver(sent[len(sent)-1].ID) })
		}},
	})
}

// fileInstructions change the configuration and the files of secrets.
func fileInstructions() []instruction {
	replace := func(key, old, with string) func(*clinic, []string) {
		return func(c *clinic, _ []string) { c.config[key] = strings.Replace(c.config[key], old, with, 1) }
	}
	return []instruction{
		{`did you mean (\w+)\?`, func(c *clinic, advice []string) {
			c.config[advice[1]] = c.config["limit"]
			delete(c.config, "limit")
		}},
		{`open (\S+): no such file or directory; write the path of a file`, func(c *clinic, _ []string) { c.write("hook", "hook-secret-for-tests", 0o600) }},
		{`/rate_limit. on this host, and check github\.url`, replace("github", "http://127.0.0.1:1", "GITHUB")},
		{`Compare the App ID .* create a new private key there, and replace the file of github\.private_key`, func(c *clinic, _ []string) {
			c.config["github"] = regexp.MustCompile(`app_id: \d+`).ReplaceAllString(c.config["github"], "app_id: APP")
			c.write("app.pem", string(c.github.App().PEM), 0o600)
		}},
		{`Set public_url to errand's public address`, func(c *clinic, _ []string) { c.config["public_url"] = c.proxy }},
		{`Set data to a folder`, func(c *clinic, _ []string) { c.config["data"] = c.path("data2") }},
		{`or to (127\.0\.0\.1):8080, and start errand`, func(c *clinic, _ []string) { c.config["listen"] = freeAddress(c.t) }},
		{`set listen to another one`, func(c *clinic, _ []string) {
			if c.proxied.Load() == nil { // what uses the address is another program
				c.config["listen"] = freeAddress(c.t)
			}
		}},
		{`file of models\.anthropic\.key`, func(c *clinic, _ []string) {
			key := "another-model-key-for-tests"
			c.modelKey.Store(&key)
			c.write("model", key, 0o600)
		}},
		{`Check models\.anthropic\.url`, replace("models", "http://127.0.0.1:1", "MODELS")},
		{`put it in the file of hetzner\.token`, func(c *clinic, _ []string) { c.write("hcloud", "the-token-of-a-project", 0o600) }},
		{`check hetzner\.endpoint`, replace("hetzner", "http://127.0.0.1:1", "HETZNER")},
		{`Set hetzner\.image to an image that the project has, such as (\S+), and`, func(c *clinic, advice []string) {
			c.config["hetzner"] = strings.Replace(c.config["hetzner"], "ubuntu-99.04", advice[1], 1)
		}},
		{`Add other server types or locations to hetzner\.candidates`, replace("hetzner", "[cx99/fsn1]", "[cx99/fsn1, cx33/fsn1]")},
		{`correct .hetzner\.candidates`, replace("hetzner", "cx99/fsn1, ", "")},
		{`Set local\.kind to auto`, replace("local", "kind: plain", "kind: auto")},
		{`Unpack errand's archive again`, func(c *clinic, _ []string) { c.bin = c.programs }},
		{`Install (\S+) where sandboxes see it`, func(c *clinic, advice []string) { c.write("bin/"+advice[1], "#!/bin/sh\necho 1\n", 0o755) }},
		{"Run `(\\S+) --version` as errand's user, and install it again", func(c *clinic, advice []string) {
			name, err := filepath.Rel(c.dir, advice[1])
			if err != nil {
				c.t.Fatal(err)
			}
			c.write(name, "#!/bin/sh\necho 2.1.0\n", 0o755)
		}},
		{`hetzner: the section is not used`, func(c *clinic, _ []string) { delete(c.config, "hetzner") }},
	}
}

// worldInstructions are commands, and clicks on pages.
func worldInstructions() []instruction {
	return []instruction{
		{"`((?:sudo )?(?:chmod|chown|install|mkdir) [^`]*)`", func(c *clinic, advice []string) { c.shell(strings.ReplaceAll(advice[1], "sudo ", "")) }},
		{`timedatectl set-ntp true`, func(c *clinic, _ []string) { c.github.ClearFaults() }},
		{`None is needed`, func(c *clinic, _ []string) { c.github.ClearFaults() }}, // but patience
		{`Free space, or move data to a larger disk`, func(c *clinic, _ []string) { c.config["data"] = c.path("data") }},
		{`Open \S+/settings/installations/\d+, grant it, and save`, func(c *clinic, _ []string) { c.github.GrantPermissions("acme", c.github.App().Permissions) }},
		{`Open \S+/settings/apps/errand/permissions, grant it, and save`, func(c *clinic, _ []string) {
			c.github.ChangeApp(c.original.Permissions, c.original.Events)
		}},
		{`Open \S+/settings/installations/\d+ and unsuspend it`, func(c *clinic, _ []string) { c.github.Suspend("acme", false) }},
		{`Open \S+/github-apps/errand/installations/new and choose repositories`, func(c *clinic, _ []string) {
			if _, err := c.github.Install("acme/shop"); err != nil {
				c.t.Fatal(err)
			}
		}},
		{`Open \S+/acme/(\w+)/settings/access, invite (\w+) with the role Triage`, func(c *clinic, advice []string) {
			if err := c.github.AddCollaborator("acme/"+advice[1], advice[2], simgithub.RoleTriage); err != nil {
				c.t.Fatal(err)
			}
		}},
		{`Open \S+, tick “Active” under Webhook, and enter (\S+?),? (?:with the secret|a name)`, func(c *clinic, advice []string) {
			c.github.SetWebhook(advice[1], "hook-secret-for-tests")
		}},
		{`Open \S+ and enter (` + regexp.QuoteMeta(handlers.NoHook) + `), a name`, func(c *clinic, advice []string) { c.github.SetWebhook(advice[1], "") }},
		{`Enter the secret of github\.webhook_secret as the webhook's secret`, func(c *clinic, _ []string) {
			c.github.SetWebhook(c.github.App().WebhookURL, "hook-secret-for-tests")
		}},
		{`Let the reverse proxy|Make \S+ reachable from the internet`, func(c *clinic, _ []string) { c.broken.Store(0) }},
	}
}

// follow does what the advice of a finding says, in its words.
func (c *clinic) follow(f doctor.Finding) {
	c.t.Helper()
	text, understood := f.Found+"\n"+f.Fix, false
	for _, i := range instructions() {
		for _, advice := range regexp.MustCompile(i.pattern).FindAllStringSubmatch(text, -1) {
			understood = true
			i.do(c, advice)
		}
	}
	if !understood {
		c.t.Fatalf("nobody can follow this advice: %s", text)
	}
	for key, value := range c.config { // what the person looked up
		value = strings.ReplaceAll(value, "GITHUB", c.github.BaseURL())
		value = strings.ReplaceAll(value, "app_id: APP", fmt.Sprint("app_id: ", c.original.ID))
		value = strings.ReplaceAll(value, "MODELS", c.models)
		c.config[key] = strings.ReplaceAll(value, "HETZNER", c.endpoint)
	}
	if err := c.github.WaitHooks(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// shell runs a command of an advice. errand is among its programs.
func (c *clinic) shell(command string) {
	c.t.Helper()
	if backups, err := filepath.Glob(c.path("backups/*.zst")); err == nil && len(backups) > 0 {
		command = strings.Replace(command, " FILE", " "+backups[len(backups)-1], 1)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "PATH="+c.programs+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// restart is what `systemctl restart errand` does.
func (c *clinic) restart() {
	c.t.Helper()
	if c.held != nil {
		_ = c.held.Close()
		c.held = nil
	}
	c.serve()
}
