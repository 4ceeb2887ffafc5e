package markdown

import (
	"strings"
	"unicode"
)

// disarm escapes everything outside of code that has an effect on GitHub; see [Embed].
func disarm(s string) string {
	src := []byte(s)
	d := disarmer{src: s}
	for _, code := range codeRanges(src) {
		if code.from < d.at || code.to <= code.from {
			continue
		}
		d.plain(code.from)
		d.code(code.to)
	}
	d.plain(len(s))
	return strings.TrimLeft(strings.TrimRight(d.out.String(), " \t\n"), "\n")
}

// disarmer rewrites a text in one pass.
type disarmer struct {
	src string
	at  int
	out strings.Builder
	// lead is the text that precedes src.
	lead string
	// tail is the last byte written, for signs whose meaning depends on the previous one.
	tail byte
}

func (d *disarmer) write(s string) {
	if s != "" {
		d.out.WriteString(s)
		d.tail = s[len(s)-1]
	}
}

// span writes text as a code span, separated from other backticks.
func (d *disarmer) span(s string) {
	if d.tail == '`' {
		d.write(" ")
	}
	d.write("`" + s + "`")
}

// code copies code unchanged, up to an offset.
func (d *disarmer) code(to int) {
	if d.tail == '`' {
		d.write(" ")
	}
	d.write(breakMarkers(d.src[d.at:to]))
	d.at = to
}

// plain rewrites text up to an offset.
func (d *disarmer) plain(to int) {
	for d.at < to {
		if d.at == 0 || d.src[d.at-1] == '\n' {
			d.lineStart(to)
		}
		if d.at < to {
			d.step(to)
		}
	}
}

// lineStart rewrites headings, which exist only at the start of a line.
func (d *disarmer) lineStart(to int) {
	line, _, _ := strings.Cut(d.src[d.at:to], "\n")
	if m := atxHeading.FindStringSubmatch(line); m != nil {
		d.write(m[1] + strings.Repeat("#", min(len(m[2])+2, 6)))
		d.at += len(m[1]) + len(m[2])
		return
	}
	m := underline.FindStringSubmatchIndex(line)
	if m == nil || d.at == 0 {
		return
	}
	above := d.src[:d.at-1]
	above = above[strings.LastIndexByte(above, '\n')+1:]
	if strings.Trim(above, " \t>") == "" {
		return
	}
	d.write(line[:m[2]] + `\`)
	d.at += m[2]
}

// step rewrites the text at the current offset.
func (d *disarmer) step(to int) {
	rest := d.src[d.at:to]
	switch c := rest[0]; c {
	case '\\':
		d.escape(rest)
	case '`':
		d.swap(1, "&#96;")
	case '<':
		if tag := detailsTag.FindString(rest); tag != "" {
			d.swap(len(tag), "")
			return
		}
		d.swap(1, "&lt;")
	case '&':
		if e := atEntity.FindString(rest); e != "" {
			d.at += len(e)
			d.mention("@" + d.src[d.at:to])
			return
		}
		d.swap(1, "&")
	case '@':
		d.at++
		d.mention(rest)
	case '!', '[':
		d.bracket(rest)
	case ']':
		if len(rest) > 1 && (rest[1] == '(' || rest[1] == ':') {
			d.swap(2, `]\`+rest[1:2])
			return
		}
		d.swap(1, "]")
	default:
		if d.afterClosingWord() {
			if ref := reference.FindString(rest); ref != "" {
				d.at += len(ref)
				d.span(ref)
				d.gap(to)
				return
			}
		}
		d.swap(1, rest[:1])
	}
}

// swap writes s in place of the next n bytes.
func (d *disarmer) swap(n int, s string) {
	d.write(s)
	d.at += n
}

// escape handles a backslash and the character that it escapes.
func (d *disarmer) escape(rest string) {
	switch {
	case len(rest) == 1:
		d.swap(1, `\\`)
	case rest[1] == '`' || rest[1] == '@' || rest[1] == '&':
		d.at++ // these are shown by other means
	case rest[1] >= 0x80 || rest[1] == '\n':
		d.swap(1, `\`)
	default:
		d.swap(2, rest[:2])
	}
}

// bracket handles links, images and check boxes. rest begins with the bracket or the exclamation mark of an image.
func (d *disarmer) bracket(rest string) {
	if m := plainLink.FindStringSubmatch(rest); m != nil {
		// The words are read again, so that nothing hides in them; the address follows in brackets.
		d.relink(m)
		return
	}
	switch {
	case strings.HasPrefix(rest, "!["):
		d.at++
	case boxMark.MatchString(rest):
		d.swap(3, `\`+rest[:3])
	default:
		d.swap(1, rest[:1])
	}
}

// relink writes a link as its text and its address.
func (d *disarmer) relink(m []string) {
	lead := d.lead + d.src[max(0, d.at-closingReach):d.at]
	inner := disarmer{src: strings.TrimSpace(m[1]), tail: d.tail, lead: lead}
	for inner.at < len(inner.src) {
		inner.step(len(inner.src))
	}
	words := inner.out.String()
	if words != "" {
		words += " "
	}
	d.write(words + "(")
	d.at += len(m[0])
	address := disarmer{src: m[2], tail: '(', lead: lead + inner.src + " ("}
	for address.at < len(address.src) {
		address.step(len(address.src))
	}
	d.write(address.out.String() + ")")
}

// mention writes a name as code if GitHub could read it as a mention. rest begins with the at sign, which has been read
// already.
func (d *disarmer) mention(rest string) {
	name := handle.FindString(rest)
	switch {
	case name != "" && isAlnum(d.tail):
		d.write("@") // an address of mail, not a person
	case name != "":
		d.at += len(name) - 1
		d.span(name)
		d.gap(len(d.src))
	case len(rest) > 1 && strings.IndexByte(" \t\n.,;:!?)", rest[1]) >= 0:
		d.write("@")
	default:
		d.span("@")
		d.gap(len(d.src))
	}
}

// gap separates a span from backticks that follow it.
func (d *disarmer) gap(to int) {
	if d.at < to && d.src[d.at] == '`' {
		d.write(" ")
	}
}

// closingReach is the distance before a reference in which a closing keyword is recognized, in bytes. [Danger] finds those
// that are farther away.
const closingReach = 64

// afterClosingWord reports whether a closing keyword precedes, possibly with spaces, punctuation and Markdown between.
func (d *disarmer) afterClosingWord() bool {
	before := d.src[max(0, d.at-closingReach):d.at]
	if d.at < closingReach {
		before = d.lead + before
	}
	trimmed := strings.TrimRightFunc(before, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return trimmed != before && closes.MatchString(trimmed)
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
