package comment

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// View has the inputs of rendering besides the task.
type View struct {
	// Slug is the bot's name in mentions.
	Slug string
	// Key is the key in the hidden marker at the end; empty means no marker. For a post it is the job's key.
	Key string
	// Now is the time of rendering; times are shown in UTC.
	Now time.Time
	// Branch is the state of the task's branch on GitHub, for the last comment.
	Branch BranchState
	// LogURL returns the address of a task's page. If it is nil or returns "", there are no links.
	LogURL func(*state.Task) string
}

// BranchState is the existence of a branch on GitHub.
type BranchState int

// The states of a branch.
const (
	BranchUnknown BranchState = iota
	BranchThere
	BranchGone
)

// log returns a link to the task's page with the words, or the words alone.
func (v View) log(t *state.Task, words string) string {
	if v.LogURL != nil {
		if url := v.LogURL(t); url != "" {
			return "[" + words + "](" + url + ")"
		}
	}
	return words
}

// marked appends the hidden marker, if there is one.
func (v View) marked(text string) string {
	if v.Key == "" {
		return text
	}
	return text + "\n\n" + Marker(v.Key)
}

// hint returns a sentence about the remedy, with its commands as people have to write them.
func (v View) hint(text string) string {
	return command.AddMentions(v.Slug, markdown.Sentence(markdown.Capitalize(text)))
}

// reason returns a reason as a sentence to be written after a colon, with its commands as people write them.
func (v View) reason(text string) string {
	return command.AddMentions(v.Slug, markdown.Sentence(markdown.Uncapitalize(text)))
}

// say returns a command as people write it, as code.
func (v View) say(text string) string { return command.WithMention(v.Slug, text) }

// clock formats a time, with the day if it is not today.
func (v View) clock(at time.Time) string {
	at, now := at.UTC(), v.Now.UTC()
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format("15:04 UTC")
	}
	return at.Format("2 Jan 15:04 UTC")
}

// unpriced returns a note that the amount was computed with the highest price.
func unpriced(m state.Money) string {
	if m.Unpriced == "" {
		return ""
	}
	return "; no price is set for the model " + markdown.Code(markdown.Line(m.Unpriced, 60)) + ", so the highest price was charged"
}

// money formats the spent amount and its cap.
func money(m state.Money) string {
	s := words.SpentOf(m)
	switch n := m.Tokens(); {
	case m.CapTokens > 0:
		s += fmt.Sprintf(" (%s of %s tokens)", words.Count(n), words.Count(m.CapTokens))
	case n > 0:
		s += fmt.Sprintf(" (%s tokens)", words.Count(n))
	}
	return s
}

var loginForm = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$`)

// spending returns the money or, on a subscription, the tokens that a task has used, with its caps.
func spending(m state.Money) string {
	if !m.Free() {
		return money(m)
	}
	s := words.Count(m.Tokens())
	if m.CapTokens > 0 {
		s += " of " + words.Count(m.CapTokens)
	}
	return s + " tokens used (" + words.Subscription + ")"
}

// to returns a mention of a person who has to act: "@login, ". It is empty for bots and unknown people.
func to(p state.Person) string {
	if p.Bot || !loginForm.MatchString(p.Login) {
		return ""
	}
	return "@" + p.Login + ", "
}

// addressed returns a text with a mention of the person who has to act, or with a capital letter if there is no mention.
func addressed(p state.Person, text string) string {
	if mention := to(p); mention != "" {
		return mention + text
	}
	return markdown.Capitalize(text)
}

// name returns a person's name without a mention.
func name(p state.Person) string {
	if p.IsOperator() {
		return p.Handle()
	}
	if s := markdown.Code(strings.ReplaceAll(p.Login, "|", "")); s != "" {
		return s
	}
	return "somebody"
}

// commentURL returns the address of a comment on the task's issue.
func commentURL(t *state.Task, id int64) string {
	if t.Repo.URL == "" || id == 0 {
		return ""
	}
	return fmt.Sprintf("%s/issues/%d#issuecomment-%d", t.Repo.URL, t.Key.Issue, id)
}

var objectID = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// commit returns a commit's hash, with a link if it is valid.
func commit(t *state.Task, id string) string {
	if t.Repo.URL == "" || !objectID.MatchString(id) {
		return markdown.ShortHash(id)
	}
	return markdown.Link(markdown.ShortHash(id), t.Repo.URL+"/commit/"+id)
}
