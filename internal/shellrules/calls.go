package shellrules

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The bounds of a line.
const (
	maxLine  = 256 << 10 // bytes
	maxCalls = 1000
	maxDepth = 5 // lines within lines
)

// unknown stands for a word that is known only when the line runs. No rule has it.
const unknown = "\x00"

// Call is one command of a line.
type Call struct {
	// Words are the command's name and arguments, without quotes. Those that only the shell will know are no
	// words that a rule can have.
	Words []string
	// Builtin: it is the shell's own, or a function of the line.
	Builtin bool
	// Opened: it only starts another command, which follows as a call of its own.
	Opened bool
	// Unread is why it is not known what it starts, as a sentence without its full stop; empty if it is.
	Unread string
}

// String returns the words, with $… for what only the shell will know.
func (c Call) String() string {
	return strings.ReplaceAll(strings.Join(c.Words, " "), unknown, "$…")
}

// forms are the ways in which rules may have written the call: as it stands, and without options between the name
// and what follows.
func (c Call) forms() [][]string {
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

// systemDirs are where the system's commands are: /usr/bin/git is git, ./git is not.
func systemDirs() []string {
	return []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
}

// Calls returns every command of a line, in its order, those that other commands start included. With an error, which is
// for people, they are those up to where the line could be read.
func Calls(line string) ([]Call, error) {
	r := &reader{functions: map[string]bool{}}
	err := r.line(line, 0)
	return r.calls, err
}

// reader collects the calls of a line.
type reader struct {
	calls     []Call
	functions map[string]bool
}

func (r *reader) line(line string, depth int) error {
	if len(line) > maxLine || depth > maxDepth {
		return errors.New("the command is too long, or too many are nested in each other")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
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
			err = r.call(wordsOf(call.Args), depth)
		}
		return err == nil
	})
	return err
}

// call adds a call, and what it starts.
func (r *reader) call(words []string, depth int) error {
	if len(r.calls) >= maxCalls {
		return errors.New("there are too many commands in it")
	}
	c := Call{Words: words}
	name := words[0]
	c.Builtin = depth == 0 && r.functions[name] || slices.Contains(builtins(), name) // env knows no functions
	switch {
	case strings.Contains(name, unknown):
		c.Unread = "which command is called is known only when it runs"
	case slices.Contains(shells(), path.Base(name)):
		return r.shell(c, depth)
	case name == "eval":
		return r.text(c, words[1:], depth)
	}
	inner, opened := started(words)
	c.Opened = opened
	r.calls = append(r.calls, c)
	for _, in := range inner {
		if depth >= maxDepth {
			return errors.New("too many commands are nested in each other")
		}
		if err := r.call(in, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// shell adds the call of a shell, with the commands of the text that it is given.
func (r *reader) shell(c Call, depth int) error {
	for rest := c.Words[1:]; len(rest) > 0 && len(rest[0]) > 1 && strings.ContainsAny(rest[0][:1], "-+"); rest = rest[1:] {
		option := rest[0]
		if option[0] == '-' && option[1] != '-' && strings.Contains(option, "c") {
			return r.text(c, rest[1:min(2, len(rest))], depth)
		}
		if strings.HasSuffix(option, "o") && len(rest) > 1 { // -euo pipefail
			rest = rest[1:]
		}
	}
	r.calls = append(r.calls, c)
	return nil
}

// text adds a call that runs a text, with the commands of that text.
func (r *reader) text(c Call, words []string, depth int) error {
	text := strings.Join(words, " ")
	c.Opened = !strings.Contains(text, unknown)
	if !c.Opened {
		c.Unread = "what " + c.Words[0] + " shall run is known only when it runs"
	}
	r.calls = append(r.calls, c)
	if !c.Opened {
		return nil
	}
	return r.line(text, depth+1)
}

// wordsOf are words as the shell hands them over, as far as that is known.
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
				b.WriteString(unknown) // $'…' has escapes of its own
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

// unescape takes away the backslashes that the shell would.
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
