package trust

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// routineAlt matches the default texts that GitHub and operating systems give to pasted pictures.
var routineAlt = regexp.MustCompile(`^(?i:image|img|screenshot|picture|logo|(?:screenshot|image|img|bildschirmfoto)[ _-]?[0-9 _.:-]{0,30}|[a-z0-9_-]{1,40}\.(?:png|jpe?g|gif|svg|webp))?$`)

// link removes a link's title, and the whole link if it has no visible text.
func (p *page) link(n *ast.Link) {
	if n.Reference != nil {
		p.used[util.ToLinkReference(n.Reference.Value)] = true
	}
	start, end := n.Pos(), p.ends.end[n]
	if start < 0 || end <= start || end > len(p.source) {
		return
	}
	if !showsSomething(n, p.source) {
		p.remove(start, end, KindEmptyLink)
		return
	}
	if isData(n.Destination) {
		p.replace(start, end, string(textOf(n, p.source)), KindInlineData, string(n.Destination))
		return
	}
	if n.Reference != nil || len(n.Title) == 0 {
		return
	}
	title := string(n.Title)
	at := strings.LastIndex(p.source[start:end], title)
	if at < 1 {
		// The title spans several quoted lines: keep the text and remove the link.
		p.replace(start, end, string(textOf(n, p.source)), KindLinkTitle, title)
		return
	}
	from, to := start+at-1, start+at+len(title)+1
	for from > start && strings.IndexByte(" \t\n", p.source[from-1]) >= 0 {
		from--
	}
	p.replace(from, min(to, end-1), "", KindLinkTitle, title)
}

// uploadPath is the common form of the addresses of uploads. uploadOf writes all others like it.
const uploadPath = "https://github.com/user-attachments/assets/"

var (
	// uploadedImage matches addresses of pictures uploaded to GitHub. They contain no text.
	uploadedImage = regexp.MustCompile(`^https://(?:github\.com/user-attachments/assets/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
		`|(?:private-)?user-images\.githubusercontent\.com/[0-9]{1,12}/[0-9]{1,14}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z]{3,4})$`)
	// otherUpload matches further forms, and those of other servers, whose names may be any text.
	otherUpload = regexp.MustCompile(`^https?://[^/?#]+/(?:user-attachments/assets|[^/?#]+/[^/?#]+/assets/[0-9]{1,14}|(?:storage/)?user/[0-9]{1,14}/files)` +
		`/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
)

// uploadOf returns the address of an upload in a form that contains no text, or "" for other addresses.
func uploadOf(address string) string {
	if uploadedImage.MatchString(address) {
		return address
	}
	if m := otherUpload.FindStringSubmatch(address); m != nil {
		return uploadPath + m[1]
	}
	return ""
}

// image removes an image's text, which browsers do not show, and its address unless it is an upload to GitHub.
func (p *page) image(n *ast.Image) {
	start, end := n.Pos(), p.ends.end[n]
	if start < 0 || end <= start || end > len(p.source) {
		return
	}
	if isData(n.Destination) {
		p.remove(start, end, KindInlineData)
		return
	}
	upload := uploadOf(string(n.Destination))
	plain := imageNote
	if upload != "" {
		plain = "![](" + upload + ")"
	}
	if p.source[start:end] == plain {
		return
	}
	alt := strings.TrimSpace(string(textOf(n, p.source)) + " " + string(n.Title))
	switch {
	case !routineAlt.MatchString(alt):
		p.replace(start, end, plain, KindImageText, alt)
	case upload != "":
		p.replace(start, end, plain, kindRoutine, alt)
	default:
		p.replace(start, end, plain, KindImageAddress, string(n.Destination))
	}
}

// isData reports whether an address contains data or a program instead of a location. GitHub does not open such
// addresses.
func isData(address []byte) bool {
	lower := strings.ToLower(strings.TrimSpace(string(address)))
	return strings.HasPrefix(lower, "data:") || strings.HasPrefix(lower, "javascript:") || strings.HasPrefix(lower, "vbscript:")
}

// destination encodes an address so that it parses to the same value.
func destination(address string) string {
	if address == "" || strings.ContainsAny(address, " \t\n()<>") {
		return "<" + strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "%0A").Replace(address) + ">"
	}
	return address
}

// definitions removes unused link definitions, and titles from the others. Only the first definition of a label counts.
func (p *page) definitions() {
	seen := map[string]bool{}
	for _, n := range p.defs {
		lines := n.Lines()
		if lines.Len() == 0 {
			continue
		}
		start, end := lines.At(0).Start, lines.At(lines.Len()-1).Stop
		label := util.ToLinkReference(n.Label)
		if !p.used[label] || seen[label] {
			p.remove(start, end, KindDefinition)
			continue
		}
		seen[label] = true
		if len(n.Title) > 0 {
			p.replace(start, end, "["+string(n.Label)+"]: "+destination(string(n.Destination)), KindLinkTitle, string(n.Title))
		}
	}
}

// showsSomething reports whether a node has visible text or an image.
func showsSomething(n ast.Node, source string) bool {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Image:
			return true
		case *ast.Text:
			if strings.TrimSpace(string(c.Segment.Value([]byte(source)))) != "" {
				return true
			}
		case *ast.RawHTML:
		default:
			if showsSomething(c, source) {
				return true
			}
		}
	}
	return false
}

// textOf returns the concatenated text of a node.
func textOf(n ast.Node, source string) []byte {
	var out []byte
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out = append(out, source[t.Segment.Start:t.Segment.Stop]...)
			if t.SoftLineBreak() || t.HardLineBreak() {
				out = append(out, ' ')
			}
			continue
		}
		out = append(out, textOf(c, source)...)
	}
	return out
}
