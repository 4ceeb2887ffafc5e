package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/errand-bot/errand/internal/config"
)

const configurationHead = `# Configuration

<!-- Made by ` + "`make generate`" + ` from the structs in internal/config. -->

errand reads one YAML file: ` + "`errand serve -c config.yml`" + `. [config.example.yml](../config.example.yml) shows every
key with its default. ` + "`errand check-config -c config.yml`" + ` reads the file as ` + "`serve`" + ` would, secrets included, starts
nothing, and says everything that is wrong with line, key and what to write. A key that errand does not know
is an error, and so is a value of another type. The file is read at the start; a restart loses nothing.

- A **duration** is written like ` + "`90s`, `30m`, `2h`, `1d12h`" + `; a day has 24 hours.
- A **secret** is ` + "`env:NAME`" + ` (an environment variable) or ` + "`file:/path`" + ` (a file's content without the space around
  it). It never stands in the file itself, is never logged, and is blanked in everything that errand writes.
- A **template** knows ` + "`{key}`" + ` (the ticket key), ` + "`{number}`" + ` (of the issue), ` + "`{slug}`" + ` (made from the title) and
  ` + "`{task}`" + ` (what is done, in a line). A placeholder without a value takes the separators around it away;
  directly after a word it leaves those that follow: without a key ` + "`feat({key}): {task}` is `feat: {task}`" + `.

Required: ` + "`github.app_id`, `github.private_key`, `github.webhook_secret`" + `, and ` + "`admin.token` or `admin.listen`" + `. The agent
claude needs ` + "`models.anthropic`" + `, too. A repository's own settings are in [repository-settings.md](repository-settings.md).
`

const repositoryHead = `# A repository's own settings: ` + "`.errand.yml`" + `

<!-- Made by ` + "`make generate`" + ` from the structs in internal/config. -->

This file is read from the default branch, or else from the organisation's ` + "`.github`" + ` repository, when a task starts and
when it is asked to plan anew. What it leaves out is the operator's. It can lower a limit, never raise one, protect
more paths, never lift a protection that the operator does not lift, and switch errand off, never on. Two lists take the place of
the operator's as far as his go: a path is excepted by ` + "`gate.unprotected`" + `, or may hold what looks like a secret by
` + "`gate.secrets_allowed_in`" + `, if both sides' lists match it, or the operator's does and this file has none. A file that is wrong
starts nothing: a comment on the issue names line, key and what to write, and the task goes on by itself when the file is mended.

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
gate: {protected: [schema/**]}
limits: {cost: 5, turns: 40}
` + "```" + `

In ` + "`check`, `{changed_files}`" + ` stands for the files of the work that differ from the base (deleted ones are not among them) and
` + "`{affected_modules}`" + ` for the modules that something changed in or was deleted from: of each path the nearest folder at or above it
with a ` + "`go.mod`, `package.json`, `pom.xml`, `build.gradle`, `build.gradle.kts`, `Cargo.toml` or `pyproject.toml`" + `. Paths are relative to the root of
the checkout, which is ` + "`.`" + ` itself; each is one quoted word, and one that begins with a hyphen has ` + "`./`" + ` before it. So write a placeholder as a
word of its own, without quotes. A command with a placeholder that stands for nothing is skipped, and the pull request says so. The changed
files are also in ` + "`ERRAND_CHANGED_FILES`" + `, one a line, unless they are more than a variable holds.

errand keeps to ` + "`commit`" + ` for every commit, merges too. The first line of a message fits if it is the template with the issue's own
` + "`{key}` and `{number}`" + ` and any words for ` + "`{task}` and `{slug}`" + `; then it stays as the agent wrote it. Any other line becomes the ` + "`{task}`" + `: with
` + "`{key} {task}`" + `, "Greet the world" is published as "ABC-7 Greet the world", and so is "abc-7: Greet the world". In a review round ` + "`{task}`" + `
is "Address review feedback — " and the agent's words. The rest of the message stays. A template without ` + "`{task}`" + ` has no place for the agent's
line, which then begins the rest of the message. What errand takes out of an agent's messages (mentions, ` + "`[skip ci]`" + `, closing keywords of other
issues) it takes out of a template's words as well.
`

// configuration is docs/configuration.md.
func configuration(s *source) (string, error) {
	var b strings.Builder
	b.WriteString(configurationHead)
	keys, err := s.keysOf(reflect.TypeFor[config.Config](), "", reflect.ValueOf(config.Default()))
	if err != nil {
		return "", err
	}
	b.WriteString("\n## The operator's file\n")
	sections(&b, keys)
	return b.String(), nil
}

// repositorySettings is docs/repository-settings.md.
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

// sections writes a table for the keys at the top, then one per section.
func sections(b *strings.Builder, keys []key) {
	head := "\n| Key | Write | Default | Meaning |\n|---|---|---|---|\n"
	b.WriteString(head)
	for _, k := range keys {
		if len(k.keys) == 0 {
			rows(b, []key{k}, true)
		}
	}
	for _, k := range keys {
		if len(k.keys) > 0 {
			fmt.Fprintf(b, "\n### `%s`\n\n%s\n%s", k.name, k.doc, head)
			rows(b, k.keys, true)
		}
	}
}

// rows writes table rows for keys and what is below them.
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
