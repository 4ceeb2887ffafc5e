package simagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// options are the supported flags.
type options struct {
	version    bool
	print      bool
	verbose    bool
	partial    bool
	fork       bool
	skipPerms  bool
	noSave     bool
	continues  bool
	format     string
	mode       string
	model      string
	system     string
	appendText string
	prompt     string
	resume     string
	sessionID  string
	settings   string
	schema     string
	mcp        []string
	tools      []string
	allowed    []string
	denied     []string
	maxTurns   int
	maxUSD     float64
	toolsGiven bool
}

// bypass reports whether tool calls need no permission.
func (o options) bypass() bool { return o.skipPerms || o.mode == "bypassPermissions" }

// arity is the number of values of a flag.
type arity int

const (
	alone arity = iota
	value
	maybe // a value if the next word is not a flag
	many  // every word up to the next flag
)

// flag is one flag of the real command line; those without a set are accepted and have no effect.
type flag struct {
	arity arity
	set   func(o *options, values []string) error
}

// flags returns the table of flags by name. Short forms have separate entries.
func flags() map[string]flag {
	text := func(at func(*options) *string) flag {
		return flag{value, func(o *options, v []string) error { *at(o) = v[0]; return nil }}
	}
	yes := func(at func(*options) *bool) flag {
		return flag{alone, func(o *options, _ []string) error { *at(o) = true; return nil }}
	}
	list := func(at func(*options) *[]string) flag {
		return flag{many, func(o *options, v []string) error { *at(o) = append(*at(o), splitList(v)...); return nil }}
	}
	file := func(at func(*options) *string) flag {
		return flag{value, func(o *options, v []string) error { return readInto(at(o), v[0]) }}
	}
	f := map[string]flag{
		"-p":                             yes(func(o *options) *bool { return &o.print }),
		"-v":                             yes(func(o *options) *bool { return &o.version }),
		"-c":                             yes(func(o *options) *bool { return &o.continues }),
		"--verbose":                      yes(func(o *options) *bool { return &o.verbose }),
		"--include-partial-messages":     yes(func(o *options) *bool { return &o.partial }),
		"--fork-session":                 yes(func(o *options) *bool { return &o.fork }),
		"--dangerously-skip-permissions": yes(func(o *options) *bool { return &o.skipPerms }),
		"--no-session-persistence":       yes(func(o *options) *bool { return &o.noSave }),
		"--output-format":                text(func(o *options) *string { return &o.format }),
		"--permission-mode":              text(func(o *options) *string { return &o.mode }),
		"--model":                        text(func(o *options) *string { return &o.model }),
		"--system-prompt":                text(func(o *options) *string { return &o.system }),
		"--append-system-prompt":         text(func(o *options) *string { return &o.appendText }),
		"--system-prompt-file":           file(func(o *options) *string { return &o.system }),
		"--append-system-prompt-file":    file(func(o *options) *string { return &o.appendText }),
		"--session-id":                   text(func(o *options) *string { return &o.sessionID }),
		"--settings":                     text(func(o *options) *string { return &o.settings }),
		"--json-schema":                  text(func(o *options) *string { return &o.schema }),
		"--mcp-config":                   {many, func(o *options, v []string) error { o.mcp = append(o.mcp, v...); return nil }},
		"--allowedTools":                 list(func(o *options) *[]string { return &o.allowed }),
		"--disallowedTools":              list(func(o *options) *[]string { return &o.denied }),
		"-r":                             {maybe, setResume},
		"--tools":                        {many, setTools},
		"--max-turns":                    {value, setMaxTurns},
		"--max-budget-usd":               {value, setMaxUSD},
		// Accepted without effect: the simulator has no corresponding feature.
		"--setting-sources":        {arity: value},
		"--input-format":           {arity: value},
		"--fallback-model":         {arity: value},
		"--permission-prompt-tool": {arity: value},
		"--add-dir":                {arity: many},
		"--strict-mcp-config":      {},
		"--disable-slash-commands": {},
		"--include-hook-events":    {},
		"--bare":                   {},
		"--safe-mode":              {},
		"--debug":                  {},
	}
	for long, short := range map[string]string{
		"--print": "-p", "--version": "-v", "--continue": "-c", "--resume": "-r",
		"--allowed-tools": "--allowedTools", "--disallowed-tools": "--disallowedTools",
	} {
		f[long] = f[short]
	}
	return f
}

func setResume(o *options, v []string) error {
	if len(v) == 0 {
		return errors.New("--resume requires a valid session ID when used with --print")
	}
	o.resume = v[0]
	return nil
}

func setTools(o *options, v []string) error {
	o.tools, o.toolsGiven = append(o.tools, splitList(v)...), true
	return nil
}

func setMaxTurns(o *options, v []string) (err error) {
	if o.maxTurns, err = strconv.Atoi(v[0]); err != nil || o.maxTurns < 1 {
		return fmt.Errorf("--max-turns must be a positive integer, not %q", v[0])
	}
	return nil
}

func setMaxUSD(o *options, v []string) (err error) {
	if o.maxUSD, err = strconv.ParseFloat(v[0], 64); err != nil || o.maxUSD <= 0 {
		return fmt.Errorf("--max-budget-usd must be a positive number, not %q", v[0])
	}
	return nil
}

// splitList accepts both forms of a list: separate words, and words joined by commas.
func splitList(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, strings.FieldsFunc(w, func(r rune) bool { return r == ',' })...)
	}
	return out
}

// parseArgs parses the command line.
func parseArgs(args []string) (options, error) {
	o := options{format: "text", mode: "default", model: "claude-sonnet-5"}
	known := flags()
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if word == "--" {
			o.prompt = strings.Join(args, " ")
			break
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			o.prompt = strings.TrimSpace(o.prompt + " " + word)
			continue
		}
		name, inline, hasInline := strings.Cut(word, "=")
		f, ok := known[name]
		if !ok {
			return o, fmt.Errorf("unknown option '%s'", name)
		}
		var values []string
		if hasInline {
			values = []string{inline}
		} else {
			values, args = take(f.arity, args)
		}
		if f.arity == value && len(values) == 0 {
			return o, fmt.Errorf("option '%s' argument missing", name)
		}
		if f.set == nil {
			continue
		}
		if err := f.set(&o, values); err != nil {
			return o, err
		}
	}
	return o, o.check()
}

// take splits a flag's values from the remaining words.
func take(n arity, args []string) (values, rest []string) {
	isFlag := func(s string) bool { return strings.HasPrefix(s, "-") && len(s) > 1 }
	switch {
	case n == value && len(args) > 0:
		return args[:1], args[1:]
	case n == maybe && len(args) > 0 && !isFlag(args[0]):
		return args[:1], args[1:]
	case n == many:
		end := slices.IndexFunc(args, isFlag)
		if end < 0 {
			end = len(args)
		}
		return args[:end], args[end:]
	}
	return nil, args
}

// check refuses combinations that the real CLI refuses.
func (o options) check() error {
	modes := []string{"acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"}
	switch {
	case o.version:
		return nil
	case !o.print:
		return errors.New("this agent has no screen; use --print")
	case !slices.Contains([]string{"text", "json", "stream-json"}, o.format):
		return fmt.Errorf("option '--output-format <format>' argument '%s' is invalid", o.format)
	case o.format == "stream-json" && !o.verbose:
		return errors.New("When using --print, --output-format=stream-json requires --verbose") //nolint:staticcheck // as claude says it
	case !slices.Contains(modes, o.mode):
		return fmt.Errorf("option '--permission-mode <mode>' argument '%s' is invalid", o.mode)
	case o.schema != "" && !json.Valid([]byte(o.schema)):
		return errors.New("--json-schema is not valid JSON")
	case o.continues:
		return errors.New("--continue is not supported here; use --resume")
	case o.sessionID != "" && o.resume != "" && !o.fork:
		return errors.New("--session-id can only be used with --resume if --fork-session is also specified")
	}
	return nil
}
