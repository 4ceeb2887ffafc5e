package shellrules

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits on a command line.
const (
	maxLine  = 256 << 10 // bytes
	maxCalls = 1000
	maxDepth = 5 // command lines nested in command lines
)

// unknown stands for a word whose value is known only at run time. No rule can contain it.
const unknown = "\x00"

// Call is one command of a command line.
type Call struct {
	// Words are the command's name and arguments, unquoted. Words whose value is known only at run time match no rule.
	Words []string
	// Builtin reports that the command is a shell builtin, or a function defined on the line.
	Builtin bool
	// Opened reports that the command only starts another one, which is listed as its own Call.
	Opened bool
	// Unread explains why it is unknown which command it starts, as a sentence without its full stop; empty if it is
	// known.
	Unread string
}

// String returns the words, with $… in place of values known only at run time.
func (c Call) String() string {
	return strings.ReplaceAll(strings.Join(c.Words, " "), unknown, "$…")
}

// spellings returns the ways in which a rule may refer to the call: as written, without the path of a system directory,
// and without options between the name and the subcommand.
func (c Call) spellings() [][]string {
	if len(c.Words) == 0 {
		return nil
	}
	forms := [][]string{c.Words}
	if name := path.Base(c.Words[0]); name != c.Words[0] && slices.Contains(systemDirs(), path.Dir(c.Words[0])) {
		forms = append(forms, append([]string{name}, c.Words[1:]...))
	}
	for _, f := range forms[:len(forms):len(forms)] {
		if rest := skipOptions(f[1:], optionsWithValue(f[0])); len(rest) < len(f)-1 {
			forms = append(forms, append([]string{f[0]}, rest...))
		}
	}
	return forms
}

// systemDirs returns the directories of system commands: /usr/bin/git is git, ./git is not.
func systemDirs() []string {
	return []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
}

// Calls returns every command of a line in order, including those that other commands start. On error, it returns the
// commands found so far; the error's text is for people.
func Calls(line string) ([]Call, error) {
	r := &reader{functions: map[string]bool{}}
	err := r.addLine(line, 0)
	return r.calls, err
}

// reader collects the calls of a line.
type reader struct {
	calls     []Call
	functions map[string]bool
}

func (r *reader) addLine(addLine string, depth int) error {
	if len(addLine) > maxLine || depth > maxDepth {
		return errors.New("the command is too long, or too many are nested in each other")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(addLine), "")
	if err != nil {
		return errors.New("it cannot be read as a shell's command line: " + err.Error())
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			r.functions[f.Name.Value] = true
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && err == nil && len(call.Args) > 0 {
			err = r.addCall(wordsOf(call.Args), depth)
		}
		return err == nil
	})
	return err
}

// addCall adds a call and the calls that it starts.
func (r *reader) addCall(words []string, depth int) error {
	if len(r.calls) >= maxCalls {
		return errors.New("there are too many commands in it")
	}
	c := Call{Words: words}
	name := words[0]
	c.Builtin = depth == 0 && r.functions[name] || slices.Contains(builtins(), name) // env cannot call functions
	switch {
	case strings.Contains(name, unknown):
		c.Unread = "which command is called is known only at run time"
	case slices.Contains(shells(), path.Base(name)):
		return r.addShell(c, depth)
	case name == "eval":
		return r.addScript(c, words[1:], depth)
	}
	inner, opened := innerCommands(words)
	c.Opened = opened
	r.calls = append(r.calls, c)
	for _, in := range inner {
		if depth >= maxDepth {
			return errors.New("too many commands are nested in each other")
		}
		if err := r.addCall(in, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// addShell adds the call of a shell, and the calls of the script that is passed with -c.
func (r *reader) addShell(c Call, depth int) error {
	for rest := c.Words[1:]; len(rest) > 0 && len(rest[0]) > 1 && strings.ContainsAny(rest[0][:1], "-+"); rest = rest[1:] {
		option := rest[0]
		if option[0] == '-' && option[1] != '-' && strings.Contains(option, "c") {
			return r.addScript(c, rest[1:min(2, len(rest))], depth)
		}
		if strings.HasSuffix(option, "o") && len(rest) > 1 { // -euo pipefail
			rest = rest[1:]
		}
	}
	r.calls = append(r.calls, c)
	return nil
}

// addScript adds a call that runs a script, and the calls of that script.
func (r *reader) addScript(c Call, words []string, depth int) error {
	text := strings.Join(words, " ")
	c.Opened = !strings.Contains(text, unknown)
	if !c.Opened {
		c.Unread = "the command that " + c.Words[0] + " runs is known only at run time"
	}
	r.calls = append(r.calls, c)
	if !c.Opened {
		return nil
	}
	return r.addLine(text, depth+1)
}

// wordsOf returns the words as the shell would pass them, as far as they are known.
func wordsOf(args []*syntax.Word) []string {
	words := make([]string, 0, len(args))
	for _, a := range args {
		words = append(words, textOf(a.Parts, false))
	}
	return words
}

func textOf(parts []syntax.WordPart, quoted bool) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				b.WriteString(unknown) // $'…' has its own escapes
				continue
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(textOf(p.Parts, true))
		default:
			b.WriteString(unknown)
		}
	}
	return b.String()
}

// unescape removes backslashes as the shell does.
func unescape(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
