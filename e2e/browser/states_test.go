package browser

import (
	"fmt"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// onPhone opens and assigns a second issue on a phone. Its plan then waits for approval.
func (l *life) onPhone() {
	l.b.window(narrow, true)
	l.b.open(l.w.GitHub.BaseURL()+"/"+demo.Full, 200)
	l.b.click(thing{Kind: "link", Name: "New issue"})
	l.b.reads("Labels, separated by commas")
	l.b.write(thing{Name: "Title"}, "Make slugs unique")
	l.b.write(thing{Name: "Description"}, l.words("second.md.txt"))
	l.b.choose(thing{Name: "Assign to"}, demo.Machine)
	l.b.click(thing{Kind: "button", Name: "Open the issue"})
	l.b.reads("Preliminary plan awaits approval")
	l.b.reads("Approve with approach 2")
	l.unique = l.number()
	l.b.window(width, false)
}

// number returns the number of the issue on the current page.
func (l *life) number() int {
	l.t.Helper()
	return must[int](l.b, "Number(location.pathname.split('/').at(-1))")
}

// states brings further tasks into the other states and expects the board to show them without reloading.
func (l *life) states() {
	l.log.front()
	l.log.open(l.w.URL+"/status", 200)
	ada := l.w.GitHub.As(demo.Maintainer)
	open := func(title, body string) int {
		i, err := ada.OpenIssue(demo.Full, simgithub.NewIssue{Title: title, Body: body})
		check(l.t, err)
		check(l.t, ada.Assign(demo.Full, i.Number, demo.Machine))
		return i.Number
	}
	open("Use Unique for article addresses", fmt.Sprintf("Blocked by #%d.", l.unique))
	l.asks = open("Let callers choose the separator", "Which separator is not for this package to say.")
	open("Transliterate accents", "Transliterate `é` to `e`, `ß` to `ss`.")
	open("Keep digits of other scripts", "`٣` and the like are dropped. Keep digits, all of them.")
	gone := open("Shorten long slugs", "Cut slugs at 80 letters.")
	check(l.t, ada.Unassign(demo.Full, gone, demo.Machine))
	for _, text := range []string{
		"Waits for other issues.", "has to answer a question", "Somebody has to write retry", "The agent is at work.",
		"waits for a 👍", "canceled",
	} {
		l.log.reads(text)
	}
	l.log.clean()
}

// mistakes checks the pages for wrong addresses and refused requests.
func (l *life) mistakes() {
	hub, b := l.w.GitHub.BaseURL(), l.b
	b.front()
	for name, page := range map[string]struct {
		address, says string
	}{
		"hub-nowhere": {hub + "/nobody/nothing", "All repositories"}, "hub-no-issue": {hub + "/" + demo.Full + "/issues/999", "All repositories"},
		"board-nowhere": {l.w.URL + "/nowhere", "Back to the board"}, "board-no-task": {l.w.URL + "/tasks/acme/slug/999", "errand has no task for this issue"},
		"board-no-run": {l.w.URL + "/tasks/acme/slug/1/runs/99", "The task has no run with this number or ID."},
	} {
		b.open(page.address, 404)
		b.reads(page.says)
		b.judge(name)
	}
	b.open(hub+"/_sim/people", 200)
	b.write(thing{Name: "New account"}, "not--a--login")
	b.expect(hub+"/_sim/people", 422)
	b.click(thing{Kind: "button", Name: "Add"})
	b.reads("Refused.")
	b.judge("hub-refused")
	b.open(l.w.URL+"/status", 200)
	b.click(thing{Kind: "button", Name: "Log out"})
	b.write(thing{Name: "Admin token"}, "guessed")
	b.expect(l.w.URL+"/login", 401)
	b.click(thing{Kind: "button", Name: "Log in"})
	b.reads("Wrong token.")
	b.judge("board-wrong-token")
}

// byKeys answers errand's question without the mouse.
func (l *life) byKeys() {
	l.b.open(fmt.Sprintf("%s/%s/issues/%d", l.w.GitHub.BaseURL(), demo.Full, l.asks), 200)
	l.b.reads("Hyphens, or underscores?")
	l.b.tabTo(thing{Kind: "field", Name: "Text, in Markdown", In: "#end"})
	l.b.keys("Hyphens, please.")
	l.b.tabTo(thing{Kind: "button", Name: "Comment", In: "#end"})
	l.b.keys("\r")
	l.b.reads("Preliminary plan awaits approval")
}
