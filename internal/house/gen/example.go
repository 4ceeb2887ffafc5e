package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/errand-bot/errand/internal/config"
)

// exampleHead stands above the keys.
const exampleHead = `# errand's configuration: every key with its default.
#
# Four things have to be set, and are read from the environment here: see github, admin and models.
# Delete what you do not change. ` + "`errand check-config -c FILE`" + ` says what is wrong, with line, key and
# what to write. Durations are written like 90s, 30m, 2h or 14d. Secrets never stand in this file:
# write env:NAME for an environment variable or file:/path for a file.
#
# This file is made from the code by ` + "`make generate`" + `.
`

// instead are the values of keys that have no default, or none that would start.
func instead() map[string]string {
	return map[string]string{
		"github.app_id":         "123456",
		"github.private_key":    "env:ERRAND_PRIVATE_KEY",
		"github.webhook_secret": "env:ERRAND_WEBHOOK_SECRET",
		"admin.token":           "env:ERRAND_ADMIN_TOKEN",
		"hetzner.token":         "env:HCLOUD_TOKEN",
		"models.NAME.url":       "https://api.anthropic.com",
		"models.NAME.key":       "env:ANTHROPIC_API_KEY",
		"models.NAME.header":    "X-Api-Key",
		"models.NAME.api":       "anthropic",
		"models.NAME.web_tools": "false",

		"models.NAME.subscription.token":     `""`,
		"models.NAME.subscription.login":     `""`,
		"models.NAME.subscription.renew_url": `""`,
		"models.NAME.subscription.client_id": `""`,
	}
}

// example is config.example.yml.
func example(s *source) (string, error) {
	keys, err := s.keysOf(reflect.TypeFor[config.Config](), "", reflect.ValueOf(config.Default()))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(exampleHead)
	for i, k := range keys {
		if len(k.keys) > 0 || i > 0 && len(keys[i-1].keys) > 0 || i == 0 {
			b.WriteString("\n")
		}
		exampleKey(&b, k, "")
	}
	return b.String(), nil
}

// exampleKey writes one key and what is below it. Lists of mappings are shown as a comment: an
// example of them that is in force would be somebody else's paths.
func exampleKey(b *strings.Builder, k key, indent string) {
	remark(b, k.doc, indent)
	switch {
	case k.path == "models":
		fmt.Fprintf(b, "%s%s:\n%s  anthropic:\n", indent, k.name, indent)
		for _, sub := range k.keys {
			exampleKey(b, sub, indent+"    ")
		}
	case k.section:
		fmt.Fprintf(b, "%s%s:\n", indent, k.name)
		for _, sub := range k.keys {
			exampleKey(b, sub, indent+"  ")
		}
	default:
		value := k.zero
		if v, ok := instead()[k.path]; ok {
			value = v
		}
		if len(k.entries) > 0 {
			value = ""
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s%s: %s", indent, k.name, value), " ") + "\n")
		for _, entry := range k.entries {
			b.WriteString(indent + "  " + entry + "\n")
		}
		if len(k.keys) > 0 {
			remark(b, "Each entry has:", indent)
		}
		for _, sub := range k.keys {
			remark(b, "  "+sub.name+": "+sub.doc, indent)
		}
	}
}

// remark writes text as YAML comment lines of at most 100 characters.
func remark(b *strings.Builder, text, indent string) {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(indent)+2+len(lead)+len(line)+1+len(word) > 100 {
			b.WriteString(indent + "# " + lead + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	b.WriteString(indent + "# " + lead + line + "\n")
}
