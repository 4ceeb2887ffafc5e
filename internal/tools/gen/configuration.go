package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/config"
)

const configurationHead = `# Configuration

<!-- Made by ` + "`make generate`" + ` from the structs in internal/config. -->

errand reads one YAML file: ` + "`errand serve -c config.yml`" + `. [config.example.yml](../config.example.yml) shows every
key with its default. ` + "`errand check-config -c config.yml`" + ` reads the file like ` + "`serve`" + `, including secrets, starts nothing,
and reports all errors with the line, the key and the expected value. Unknown keys and values of the wrong type are errors. errand reads the file at startup; a restart loses no data.

` + "`errand config -c config.yml`" + ` lists the values that the file sets, and with ` + "`--effective`" + ` all values, each with its origin: a default, a line of
the file, an environment variable, or the file of a secret. Secrets are never shown, and neither is anything that looks like one. ` + "`--json`" + ` prints ` + "`file`" + ` and ` + "`settings`" + `,
each with ` + "`key`" + `, ` + "`value`" + ` (absent for a secret), ` + "`secret`, `set`, `origin`" + ` (` + "`default`, `config`, `env` or `file`" + `), ` + "`from`" + ` (the name of the variable or the path of the file) and ` + "`line`" + `.

- A **duration** is written like ` + "`90s`" + `, ` + "`30m`" + `, ` + "`2h`" + `, ` + "`1d12h`" + `; a day has 24 hours.
- A **secret** is ` + "`env:NAME`" + ` (an environment variable) or ` + "`file:/path`" + ` (the content of a file, without surrounding whitespace). The configuration itself never contains a secret. errand never logs secrets, and redacts them in everything that it writes.
- A **template** can contain ` + "`{key}`" + ` (the ticket key), ` + "`{number}`" + ` (of the issue), ` + "`{slug}`" + ` (derived from the title) and ` + "`{task}`" + ` (one line about the change). A placeholder without a value is removed together with the separators around it;
  directly after a word, the separators that follow stay: without a key ` + "`feat({key}): {task}`" + ` is ` + "`feat: {task}`" + `.

Required keys: ` + "`github.app_id`" + `, ` + "`github.private_key`" + `, ` + "`github.webhook_secret`" + ` (unless ` + "`github.webhooks`" + ` is ` + "`poll`" + `), and ` + "`admin.token`" + ` or ` + "`admin.listen`" + `. The agent claude also needs ` + "`models.anthropic`" + `. The sections for agents and VMs (` + "`agent`, `models`, `prices`, `local`, `hetzner`, `bake` and `egress`" + `) have [their own page](configuration-agents.md). A repository's own settings are in [repository-settings.md](repository-settings.md).

## The operator's file
`

const agentsHead = `# Configuration of agents and VMs

<!-- Made by ` + "`make generate`" + ` from the structs in internal/config. -->

These are the sections of errand's configuration about agents, models and the VMs on which agents work. [configuration.md](configuration.md) has all others, and describes the file
and its values. [agents.md](agents.md) explains how to choose agents and models.

## Sections
`

// agentKeys are the sections in docs/configuration-agents.md.
func agentKeys() []string {
	return []string{"agent", "models", "prices", "local", "hetzner", "bake", "egress"}
}

const repositoryHead = `# A repository's own settings: ` + "`.errand.yml`" + `

<!-- Made by ` + "`make generate`" + ` from the structs in internal/config. -->

errand reads this file from the default branch, or else from the organization's ` + "`.github`" + ` repository, when a task starts and
when it is replanned. Omitted keys have the operator's values. The file can lower a limit, never raise one. It can protect
more paths, and lift a protection only if the operator lifts it, too. It can disable errand, never enable it. Two lists combine with
the operator's: a path is an exception by ` + "`gate.unprotected`" + `, or may contain text that looks like a secret by
` + "`gate.secrets_allowed_in`" + `, if both lists match it, or if the operator's list matches it and this file has no list. An invalid file
starts nothing: a comment on the issue names the line, the key and the expected value,
and the task continues automatically when the file is fixed. The operator can have one proposed: [init.md](init.md).

` + "```yaml" + `
plan: one-step
branch: "errand/{key}-{slug}"
key: {pattern: '[A-Z]+-[0-9]+', required: true}
env: {SERVICE_HOST: localhost}
setup: [go mod download]
check:
  - for m in {affected_modules}; do (cd "$m" && go vet ./...) || exit 1; done
  - name: tests
    run: go test ./...
    timeout: 20m
  - {name: coverage, run: make cover, before_pr: true}
gates: {coverage: 85}
gate: {protected: [schema/**]}
limits: {cost: 5, turns: 40}
` + "```" + `

In ` + "`check`" + `, ` + "`{changed_files}`" + ` is replaced by the files that differ from the base (without deleted ones), and
` + "`{affected_modules}`" + ` by the modules with changed or deleted files: for each path, the nearest folder at or above it
with a ` + "`go.mod`" + `, ` + "`package.json`" + `, ` + "`pom.xml`" + `, ` + "`build.gradle`" + `,
` + "`build.gradle.kts`" + `, ` + "`Cargo.toml`" + ` or ` + "`pyproject.toml`" + `.
Paths are relative to the root of the checkout, which is ` + "`.`" + ` itself. Each path is one quoted word, and a path that begins with a hyphen gets the prefix ` + "`./`" + `.
So write a placeholder as a separate word without quotes. A command whose placeholder is empty is skipped, and the pull request says so. The changed
files are also in ` + "`ERRAND_CHANGED_FILES`" + `, one per line, unless they exceed the size of a variable. [gates.md](gates.md) describes ` + "`gates`" + ` and ` + "`before_pr`" + `.

` + "`commit`" + ` applies to every commit, including merges. The first line of a message fits if it matches the template with the issue's own
` + "`{key}`" + ` and ` + "`{number}`" + ` and any text for ` + "`{task}`" + ` and ` + "`{slug}`" + `; then it is not changed. Any other line becomes the ` + "`{task}`" + `: with
` + "`{key} {task}`" + `, "Greet the world" is published as "ABC-7 Greet the world", and so is "abc-7: Greet the world". In a review round ` + "`{task}`" + `
is "Address review feedback — " and the agent's line. The rest of the message is not changed. If a template has no ` + "`{task}`" + `, the agent's
line becomes the beginning of the rest of the message. errand removes from a template's text the same things
as from an agent's messages (mentions, ` + "`[skip ci]`" + `, closing keywords of other issues, trailers such as ` + "`Co-authored-by:`" + `, and lines
that advertise a program, such as "Generated with …").

` + "`trailers`" + ` and ` + "`signoff`" + ` add lines about the person who approved the detailed plan, also to the commits of review rounds: the name in that
person's profile, or else the login, and their noreply address (` + "`ID+LOGIN@users.noreply.HOST`" + `, where HOST is github.com or that of an
Enterprise Server). errand still creates the commits as the App, so GitHub signs them. If a check for sign-offs fails on a pull request
(its name contains DCO, sign-off or "Developer Certificate of Origin"), the status comment says which setting to use.

A review round is answered in one review: an answer in every thread, and a summary that links each of them. A comment in a thread
is for errand if it starts the thread, answers errand or a bot, mentions errand, or continues such a comment of the same person; thanks in
between do not matter. Other replies are between people: errand does not answer them, and they start no round. After a round, errand requests
another review from the people with write access whose last verdict is a request for changes. Threads are resolved by people, or by errand
with ` + "`resolve: true`" + `.
`

// configuration returns docs/configuration.md.
func configuration(s *source) (string, error) { return s.operatorKeys(configurationHead, false) }

// configurationOfAgents returns docs/configuration-agents.md.
func configurationOfAgents(s *source) (string, error) { return s.operatorKeys(agentsHead, true) }

// operatorKeys returns the page of the operator's keys about agents, or about everything else.
func (s *source) operatorKeys(head string, ofAgents bool) (string, error) {
	keys, err := s.keysOf(reflect.TypeFor[config.Config](), "", reflect.ValueOf(config.Default()))
	if err != nil {
		return "", err
	}
	keys = slices.DeleteFunc(keys, func(k key) bool { return slices.Contains(agentKeys(), k.name) != ofAgents })
	var b strings.Builder
	b.WriteString(head)
	sections(&b, keys)
	return b.String(), nil
}

// repositorySettings returns docs/repository-settings.md.
func repositorySettings(s *source) (string, error) {
	var b strings.Builder
	b.WriteString(repositoryHead)
	keys, err := s.keysOf(reflect.TypeFor[config.RepoFile](), "", reflect.Value{})
	if err != nil {
		return "", err
	}
	b.WriteString("\n| Key | Write | Meaning |\n|---|---|---|\n")
	rows(&b, keys, false)
	return b.String(), nil
}

// sections writes a table for the keys at the top, if there are any, then one per section.
func sections(b *strings.Builder, keys []key) {
	head := "\n| Key | Write | Default | Meaning |\n|---|---|---|---|\n"
	top := slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return len(k.keys) > 0 })
	if len(top) > 0 {
		b.WriteString(head)
		rows(b, top, true)
	}
	for _, k := range keys {
		if len(k.keys) > 0 {
			fmt.Fprintf(b, "\n### `%s`\n\n%s\n%s", k.name, k.doc, head)
			rows(b, k.keys, true)
		}
	}
}

// rows writes table rows for keys and the keys below them.
func rows(b *strings.Builder, keys []key, defaults bool) {
	for _, k := range keys {
		fmt.Fprintf(b, "| `%s` | %s |", k.path, k.kind)
		if defaults {
			zero := "`" + k.zero + "`"
			if k.zero == "" || k.zero == `""` {
				zero = ""
			}
			fmt.Fprintf(b, " %s |", zero)
		}
		fmt.Fprintf(b, " %s |\n", strings.ReplaceAll(k.doc, "|", `\|`))
		rows(b, k.keys, defaults)
	}
}
