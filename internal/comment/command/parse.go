package command

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// maxBody is the length of the longest comment that GitHub stores, in bytes. The rest of a longer text is not read.
const maxBody = 262_144

// Limits on the mentions that are read, and on the commands that [Parsed].Left lists.
const (
	maxMentions = 100
	maxLeft     = 20
)

// Parsed is the content of a comment for the bot.
type Parsed struct {
	// Mention is set if a line of plain text begins with the bot's name: a line of a paragraph at the top level, outside of
	// other Markdown blocks and HTML elements.
	Mention bool
	// Quoted is set if commands are only in other places, where they do not count: in quotes, code, lists, tables, HTML, and the
	// texts of links and images.
	Quoted bool
	// Words is set with Quoted if the comment has plain text besides.
	Words bool
	// Orders are the commands in their order, at most machine.MaxOrders. It is empty without a mention.
	Orders []state.Order
	// Left lists further commands, as written and truncated, and More counts those beyond: none of them is executed.
	Left []string
	More int
	// Text is the text before the first mention, or the whole comment without one.
	Text string
	// Remark is the kind of a comment whose text, besides commands, requests nothing. A mention of the bot is left out of the text
	// that is classified, so that a comment without commands is never addressed to others.
	Remark state.Remark
	// Base is the branch of the first "base: NAME" in plain text, including lists and emphasis, if any.
	Base string
}

// Parse parses a comment. slug is the bot's name in mentions; onPR means that the comment is on a pull request, where some
// commands do not exist. The comment may be untrusted: the time is bounded.
func Parse(body, slug string, onPR bool) Parsed {
	if len(body) > maxBody {
		body = body[:maxBody]
	}
	body = markdown.Normalize(cutMail(body))
	if slug == "" || !strings.Contains(strings.ToLower(body), "@"+strings.ToLower(slug)) {
		return Parsed{Text: markdown.TrimLines(body), Base: Base(body), Remark: ClassifyRemark(body, slug)}
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
		if p.Quoted = quotesCommand(body, slug, onPR); p.Quoted {
			p.Words = hasOtherWords(doc.VisibleText(body), slug)
		} else {
			p.Remark = ClassifyRemark(body, slug)
		}
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
	for _, o := range p.Orders { // at most one is a message
		if o.Verb == state.VerbMessage {
			p.Remark = ClassifyRemark(o.Text, slug)
		}
	}
	if len(p.Orders) == 1 && p.Remark == state.RemarkToOthers { // the mention comes first
		p.Remark = ""
	}
	return p
}

// Mentions reports whether a comment mentions the bot anywhere in plain text, including lists and emphasis. The comment
// may be untrusted: the time is bounded.
func Mentions(body, slug string) bool {
	if len(body) > maxBody {
		body = body[:maxBody]
	}
	body = markdown.Normalize(body)
	if slug == "" || !strings.Contains(strings.ToLower(body), "@"+strings.ToLower(slug)) {
		return false
	}
	text := markdown.Parse(body).VisibleText(body)
	for at, c := range text {
		if c != '@' || at > 0 && (isWord(text[at-1]) || text[at-1] == '-') {
			continue
		}
		if _, ok := mentionAt(text[at:], slug); ok {
			return true
		}
	}
	return false
}

// leaveOut moves the commands beyond the limit to Left and More.
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

// mention has the offsets of a line and of the text after the bot's name on it.
type mention struct{ line, end int }

// mentionAt reports whether s begins with a mention of the bot, and returns the offset of the text after it.
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

// lineMarkup matches the markup before the first word of a line.
var lineMarkup = regexp.MustCompile("^(?:[ \\t>*+`~_|#!\\[(-]|<[^<>]*>|[0-9]+[.)])*")

// quotesCommand reports whether any line begins with the mention, possibly after markup, and a command.
func quotesCommand(body, slug string, onPR bool) bool {
	for line := range strings.Lines(body) {
		line = line[len(lineMarkup.FindString(line)):]
		end, ok := mentionAt(line, slug)
		if !ok {
			continue
		}
		rest := strings.TrimSpace(line[end:])
		if at := strings.IndexAny(rest, "`*_~<|"); at >= 0 {
			rest = strings.TrimSpace(rest[:at])
		}
		if rest == "" {
			return true
		}
		if o, got := readLine(rest, "", onPR); got != noMatch && o.Verb != state.VerbMessage {
			return true
		}
	}
	return false
}

// hasOtherWords reports whether plain text has words on lines that do not begin with the mention.
func hasOtherWords(text, slug string) bool {
	for line := range strings.Lines(text) {
		line = line[len(lineMarkup.FindString(line)):]
		if _, ok := mentionAt(line, slug); !ok && strings.ContainsFunc(line, unicode.IsLetter) {
			return true
		}
	}
	return false
}

// readOrders parses the text after a mention: the rest of its line, and the lines below.
func readOrders(line, tail string, onPR bool) []state.Order {
	whole := strings.TrimSpace(line + "\n" + tail)
	line, below := strings.TrimSpace(line), strings.TrimRight(tail, " \t\n")
	tail = strings.TrimSpace(tail)
	if line == "" {
		if tail != "" {
			return []state.Order{{Verb: state.VerbMessage, Text: tail}}
		}
		if onPR { // no task can be started on a pull request
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

// joinMessages joins the messages of a comment into the first one, so that a comment has at most one message.
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
			kept[first].After = kept[first].After && o.After
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// readLine parses a line with the command that it names. For outOfBounds, Arg is a valid example.
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

// cutWord removes a command's name from the start of a line.
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

// Base returns the branch of the first "base: NAME" in the plain text of a Markdown text, like Parsed.Base, or "". The name is
// valid in git.
func Base(text string) string {
	text = markdown.Normalize(text)
	if len(text) > maxBody || !baseWord.MatchString(text) {
		return ""
	}
	return baseIn(markdown.Parse(text).VisibleText(text))
}

// baseIn is like [Base] for plain text.
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

// asciiLower maps only A to Z to lower case: GitHub's names are ASCII, and no other letter must be equal to one of them.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
