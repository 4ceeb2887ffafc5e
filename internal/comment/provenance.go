package comment

import (
	"fmt"
	"regexp"

	"github.com/errand-bot/errand/internal/comment/markdown"
)

// plainEnvelope matches an envelope in one line. Its payload is base64, so it contains no text of people that could be Markdown.
var plainEnvelope = regexp.MustCompile(`^\{[A-Za-z0-9"':,/+.=\[\]{} -]*\}$`)

// provenance renders the signed statement about the published changes. Text is its envelope, Items are its content in words.
func (p post) provenance() string {
	verify := "Verify it with "
	if p.t.PR != nil {
		verify += markdown.Code(fmt.Sprintf("errand verify %s#%d --key FILE", p.t.Repo.FullName(), p.t.PR.Number)) + ". "
	}
	verify += "An edit of this comment makes it invalid."
	envelope := ""
	if plainEnvelope.MatchString(p.Text) {
		envelope = "```json\n" + p.Text + "\n```"
	}
	return markdown.Paragraphs(
		"**Provenance.** A signed statement of how these changes came about.",
		markdown.Fold("What it states, and the statement", markdown.Paragraphs(markdown.BulletList(p.Items, 20), verify, envelope)),
	)
}
