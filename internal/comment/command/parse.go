package command

import (
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// maxBody is the most of a comment that is read, in bytes: the longest that GitHub stores.
const maxBody = 262_144

// Bounds of what is read beyond the commands that are carried out, to say what is not: mentions, and commands that are named.
const (
	maxMentions = 100
	maxLeft     = 20
)

// Parsed is what a comment says to the bot.
type Parsed struct {
	// Mention is set if a line of plain text begins with the bot's name: a line of a paragraph that
	// GitHub shows in nothing else, neither in Markdown's structures nor in elements of HTML.
	Mention bool
	// Quoted is set if the name is at the start of a line only elsewhere (in quotes, code, lists,
	// tables, HTML, links' and images' texts), where it does not count.
	Quoted bool
	// Orders are the commands in their order, at most state.MaxOrders. Empty without a mention.
	Orders []state.Order
	// Left are further commands as they were written, shortened, and More counts those beyond: none of them is carried out.
	Left []string
	More int
	// Text is what stands before the first mention, or the whole comment without one.
	Text string
	// Base is the branch named by "base: NAME" in plain text, lists and emphasis included, if any.
	Base string
}

// Parse reads a comment. slug is the bot's name as in its mention; onPR says that the comment is on
// a pull request, where some commands mean nothing. Comments by strangers may be passed: the time
// is bounded, and nothing in one is believed beyond its words.
func Parse(body, slug string, onPR bool) Parsed {
	if len(body) > maxBody {
		body = body[:maxBody]
	}
	body = markdown.Normalize(body)
	if slug == "" || !strings.Contains(strings.ToLower(body), "@"+strings.ToLower(slug)) {
		return Parsed{Text: markdown.TrimLines(body), Base: Base(body)}
	}
	doc := markdown.Parse(body)
	var p Parsed
	var starts []mention
	for _, line := range doc.CommandLines {
		if end, ok := mentionAt(body[line:], slug); ok {
			starts = append(starts, mention{line: line, end: line + end})
		}
	}
	p.Base = baseIn(doc.VisibleText(body))
	if len(starts) == 0 {
		p.Text = markdown.TrimLines(body)
		p.Quoted = mentionsAnywhere(body, slug)
		return p
	}
	p.Mention = true
	p.Text = markdown.TrimLines(body[:starts[0].line])
	for i, m := range starts[:min(len(starts), maxMentions)] {
		stop := len(body)
		if i+1 < len(starts) {
			stop = starts[i+1].line
		}
		line, tail, _ := strings.Cut(markdown.TrimLines(body[m.end:stop]), "\n")
		p.Orders = append(p.Orders, readOrders(line, tail, onPR)...)
	}
	p.More = max(0, len(starts)-maxMentions)
	p.Orders = joinMessages(p.Orders)
	p.leaveOut()
	if o := &p.Orders[0]; o.Verb == state.VerbMessage && p.Text != "" {
		o.Text = p.Text + "\n\n" + o.Text
	}
	return p
}

// leaveOut moves what is beyond the limit of commands to those that are left out.
func (p *Parsed) leaveOut() {
	if len(p.Orders) <= machine.MaxOrders {
		return
	}
	left := p.Orders[machine.MaxOrders:]
	p.Orders = p.Orders[:machine.MaxOrders:machine.MaxOrders]
	for _, o := range left[:min(len(left), maxLeft)] {
		words, _, _ := strings.Cut(strings.TrimSpace(Format(o)), "\n")
		words, _ = markdown.Cut(words, 60)
		p.Left = append(p.Left, words)
	}
	p.More += len(left) - len(p.Left)
}

// mention is where a line begins and where the words after the bot's name do.
type mention struct{ line, end int }

// mentionAt reports whether s begins with a mention of the bot, and where the words after it begin.
func mentionAt(s, slug string) (int, bool) {
	n := 1 + len(slug)
	if len(s) < n || s[0] != '@' || asciiLower(s[1:n]) != asciiLower(slug) {
		return 0, false
	}
	if len(s) >= n+5 && asciiLower(s[n:n+5]) == "[bot]" {
		n += 5
	}
	if n < len(s) && (isWord(s[n]) || s[n] == '-' || s[n] == '/' || s[n] == '@') {
		return 0, false
	}
	for n < len(s) && strings.IndexByte(" \t,:", s[n]) >= 0 {
		n++
	}
	return n, true
}

// lineMarkup matches what can stand before the words of a line.
var lineMarkup = regexp.MustCompile("^(?:[ \\t>*+`~_|#!\\[(-]|<[^<>]*>|[0-9]+[.)])*")

// mentionsAnywhere reports whether any line begins with the mention, past markup.
func mentionsAnywhere(body, slug string) bool {
	for line := range strings.Lines(body) {
		if _, ok := mentionAt(line[len(lineMarkup.FindString(line)):], slug); ok {
			return true
		}
	}
	return false
}

// readOrders reads what follows one mention: the rest of its line, and the lines below.
func readOrders(line, tail string, onPR bool) []state.Order {
	whole := strings.TrimSpace(line + "\n" + tail)
	line, below := strings.TrimSpace(line), strings.TrimRight(tail, " \t\n")
	tail = strings.TrimSpace(tail)
	if line == "" {
		if tail != "" {
			return []state.Order{{Verb: state.VerbMessage, Text: tail}}
		}
		if onPR { // there is nothing to start on a pull request
			return []state.Order{{Verb: state.VerbHelp}}
		}
		return []state.Order{{Verb: state.VerbPlan}}
	}
	o, got := readLine(line, below, onPR)
	o.Text = strings.TrimSpace(o.Text)
	switch {
	case got == outOfBounds:
		return []state.Order{{Verb: state.VerbUnknown, Arg: o.Arg, Text: whole}}
	case got == noMatch:
		if near := nearest(line, onPR); near != "" && tail == "" {
			return []state.Order{{Verb: state.VerbUnknown, Arg: near, Text: line}}
		}
		return []state.Order{{Verb: state.VerbMessage, Text: whole}}
	case o.Text != "" && !entryOf(o.Verb).keepsText:
		text := o.Text
		o.Text = ""
		return []state.Order{o, {Verb: state.VerbMessage, Text: text}}
	}
	return []state.Order{o}
}

// joinMessages joins the messages of a comment into the first: a comment says one thing to the agent.
func joinMessages(orders []state.Order) []state.Order {
	first := -1
	kept := orders[:0]
	for _, o := range orders {
		switch {
		case o.Verb != state.VerbMessage:
		case first < 0:
			first = len(kept)
		default:
			kept[first].Text += "\n\n" + o.Text
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// readLine looks the line's command up in the table. With readWrong, Arg is a right example.
func readLine(line, tail string, onPR bool) (state.Order, match) {
	for _, c := range Table() {
		if onPR && c.Where == OnIssue || !onPR && c.Where == OnPR {
			continue
		}
		for _, word := range c.Words {
			args, ok := cutWord(line, word)
			if !ok {
				continue
			}
			o, got := c.read(args, tail)
			if got == outOfBounds {
				return state.Order{Arg: c.Example}, outOfBounds
			}
			if got == matched {
				o.Verb = c.Verb
				return o, matched
			}
		}
	}
	return state.Order{}, noMatch
}

// cutWord takes a command's word (or words) from the start of a line.
func cutWord(line, word string) (rest string, ok bool) {
	fields := strings.Fields(word)
	for i, f := range fields {
		line = strings.TrimLeft(line, " \t")
		if len(line) < len(f) || asciiLower(line[:len(f)]) != f {
			return "", false
		}
		line = line[len(f):]
		if i < len(fields)-1 && !strings.HasPrefix(line, " ") {
			return "", false
		}
	}
	if line != "" && !strings.ContainsRune(" \t,.!:", rune(line[0])) {
		return "", false
	}
	return strings.TrimSpace(line), true
}

var baseWord = regexp.MustCompile("(?i)(?:^|[\\s(,;])base:[ \\t]*`?([A-Za-z0-9][A-Za-z0-9._/+-]*)`?")

// Base returns the branch that a text names with "base: NAME" in plain text, as Parsed.Base is, or the
// empty string. The name is one that git takes.
func Base(text string) string {
	text = markdown.Normalize(text)
	if len(text) > maxBody || !baseWord.MatchString(text) {
		return ""
	}
	return baseIn(markdown.Parse(text).VisibleText(text))
}

// baseIn is Base of text that is all visible.
func baseIn(text string) string {
	m := baseWord.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	name := strings.TrimRight(m[1], ".")
	if !naming.ValidBranch(name) {
		return ""
	}
	return name
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// asciiLower lowers A to Z alone: GitHub's names are ASCII, and no other letter may pass for one.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
