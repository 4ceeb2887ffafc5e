package browser

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
)

// TestHeavyByClicks takes an issue from its opening to the merge like a person in a browser, with clicks and keys only.
// It checks every page on the way and all other pages in the end.
func TestHeavyByClicks(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	b := newBrowser(t)
	b.do() // starts while the world is created
	w := newWorld(t)
	l := &life{t: t, w: w, b: b, began: time.Now()}
	for _, step := range []struct {
		name string
		play func()
	}{
		{"open an issue", l.open}, {"assign it", l.assign}, {"read the plan", l.readPlan}, {"ask for a change", l.askForChange},
		{"approve with a thumb", l.thumb}, {"approve by the box", l.tick}, {"watch the agent", l.watch}, {"see the pull request", l.seePull},
		{"review it", l.review}, {"see the answers", l.seeAnswers}, {"approve it", l.approve}, {"merge it", l.merge}, {"see the end", l.seeEnd},
		{"open another on a phone", l.onPhone}, {"see every state", l.states}, {"take pictures", l.pictures},
		{"look at every page", l.everyPage}, {"answer by keys", l.byKeys}, {"go astray", l.mistakes},
	} {
		before := t.Failed()
		step.play()
		b.clean()
		if t.Failed() && !before && step.name != "look at every page" { // a fault of a page does not end the test
			t.Fatalf("after the step %q", step.name)
		}
		t.Logf("%5.1f s  %s", time.Since(l.began).Seconds(), step.name)
	}
}

// life is one person's work on one issue.
type life struct {
	t     *testing.T
	w     *demo.World
	b     *tab
	began time.Time
	log   *tab // the board's address
	// unique and asks are the issues whose plan waits for approval and whose question waits for an answer.
	unique, asks int
}

// words returns a text of the demo.
func (l *life) words(file string) string {
	l.t.Helper()
	text, err := os.ReadFile("../../internal/demo/fixture/" + file)
	check(l.t, err)
	return strings.TrimSpace(string(text))
}

func (l *life) open() {
	l.b.open(l.w.GitHub.BaseURL()+"/", 200)
	l.b.click(thing{Kind: "link", Name: demo.Full})
	l.b.click(thing{Kind: "link", Name: "New issue"})
	l.b.reads("New issue")
	l.b.write(thing{Name: "Title"}, "Slugs end in a hyphen when the title ends in punctuation")
	l.b.write(thing{Name: "Description"}, l.words("issue.md.txt"))
	l.b.click(thing{Kind: "button", Name: "Open the issue"})
	l.b.reads("opened by A" + demo.Maintainer)
}

func (l *life) assign() {
	l.b.choose(thing{Name: "Assign", In: "aside"}, demo.Machine)
	l.b.click(thing{Kind: "button", Name: "Assign", In: "aside"})
	l.b.reads("assigned Eerrand-bot")
	l.b.await("errand's eyes on the issue", "[...document.querySelectorAll('.reaction')].some((e) => e.title.includes('errand[bot]') && e.textContent.includes('👀'))")
}

// said returns the article of the comment with a text.
func said(text string) thing { return thing{In: ".talk > article.text", Has: text} }

func (l *life) readPlan() {
	l.b.reads("Preliminary plan, revision 1")
	l.b.reads("Trim hyphens from both ends")
	l.b.reads("Preliminary plan awaits approval")
}

func (l *life) askForChange() {
	l.b.write(thing{Name: "Text, in Markdown, as ada", In: "#end"}, "Please do not trim afterwards: let the loop not write the hyphen in the first place.")
	l.b.click(thing{Kind: "button", Name: "Comment", In: "#end"})
	l.b.reads("Preliminary plan, revision 2")
	l.b.await("the old revision folded", "[...document.querySelectorAll('summary')].some((e) => e.textContent.includes('folded as outdated'))")
}

func (l *life) thumb() {
	plan := said("Preliminary plan, revision 2")
	plan.Kind, plan.Name = "summary", "Add a reaction"
	l.b.click(plan)
	plan.Kind, plan.Name = "button", "Thumbs up"
	l.b.click(plan)
	l.b.reads("Plan, revision 1")
}

func (l *life) tick() {
	plan := said("Approve revision 1?")
	plan.Kind, plan.Name = "button", "Approve"
	l.b.click(plan)
	l.b.await("the tick", "[...document.querySelectorAll('[role=checkbox]')].at(-1).getAttribute('aria-checked') === 'true'")
	l.b.reads("Implementing")
}

// watch follows the link of the status comment to the log, shows the token, and sees the agent at work.
func (l *life) watch() {
	status := said("at the start of a comment")
	status.Kind, status.Name = "link", "Log"
	l.b.await("the link to the log", "the("+quote(status)+")")
	log := l.b.another()
	address := must[string](l.b, "the("+quote(status)+").href")
	log.open(address, 401)
	log.judge("login")
	log.open(address, 401)
	log.write(thing{Name: "Admin token"}, demo.AdminToken)
	log.click(thing{Kind: "button", Name: "Log in"})
	log.reads("The agent is at work.")
	log.reads("They fail as described. Now the fix.")
	log.reads("Live: new entries appear as they come.")
	log.reads("ok example.org/slug")
	log.picture("log", 820)
	log.judge("live")
	log.do(chromedp.Reload())
	log.reads("Live: new entries appear as they come.")
	l.w.Model.Release(gate)
	log.reads("Green. I commit the fix with its tests.")
	log.clean()
	l.log = log
	l.b.front()
}

func (l *life) seePull() {
	l.b.reads("is open: Leave no hyphen")
	opened := said("is open: Leave no hyphen")
	opened.Kind, opened.Name = "link", "#2"
	l.b.click(opened)
	l.b.reads("Merging")
}

// remark comments on a line of the files' page, in the review.
func (l *life) remark(path, line, text string) {
	l.t.Helper()
	at := thing{In: "tr.d-add", Has: line}
	at.Kind, at.Name = "summary", "+"
	at.Name = "Comment on line"
	l.b.click(at)
	at.Kind = "field"
	l.b.write(at, text)
	at.Kind, at.Name = "button", "Add to the review"
	l.b.click(at)
	l.b.await("the remark on "+path, "[...document.querySelectorAll('.pending')].some((e) => e.textContent.includes("+quote(text)+"))")
}

func (l *life) review() {
	l.b.click(thing{Kind: "link", Name: "Review the changes"})
	l.b.reads("Your review")
	l.remark("slug.go", "g := false", "Please keep the name `gap`; one letter says nothing.")
	l.remark("slug_test.go", `"?!"`, "Can you add the empty title, too?")
	address := must[string](l.b, "location.origin + location.pathname")
	l.b.judge("pending")
	l.b.open(address, 200)
	l.b.write(thing{Name: "Summary"}, "Two small things.")
	l.b.click(thing{Kind: "button", Name: "Request changes"})
	l.b.reads("Two small things.")
}

func (l *life) seeAnswers() {
	l.b.reads("Renamed it back to gap")
	l.b.reads("Added: the empty title gives the empty slug.")
	l.b.reads("Address review feedback")
}

func (l *life) approve() {
	l.b.click(thing{Kind: "link", Name: "Review the changes"})
	l.b.reads("Your review")
	l.b.click(thing{Kind: "button", Name: "Approve"})
	l.b.reads("No conflicts with")
}

func (l *life) merge() {
	l.b.click(thing{Kind: "button", Name: "Merge"})
	l.b.reads("merged this with")
}

func (l *life) seeEnd() {
	l.b.click(thing{Kind: "link", Name: "Slugs end in a hyphen", In: "aside"})
	l.b.await("the issue closed", "document.querySelector('.title .state').textContent === 'Closed'")
	l.b.reads("the task is done.")
	l.b.await("the status that it is done", "[...document.querySelectorAll('.talk h3')].some((e) => flat(e.textContent) === 'Done')")
	l.log.front()
	l.log.open(l.w.URL+"/status", 200)
	l.log.reads("No open tasks")
	l.log.reads("done")
	l.log.clean()
	l.b.front()
}

// pictures saves the README's pictures.
func (l *life) pictures() {
	l.log.open(l.w.URL+"/status", 200)
	l.log.picture("board", 1010)
	l.b.front()
	l.b.open(fmt.Sprintf("%s/%s/issues/%d", l.w.GitHub.BaseURL(), demo.Full, l.unique), 200)
	l.b.picture("thread", 1672)
}

// everyPage checks all pages that can be reached from the two front pages.
func (l *life) everyPage() {
	c := &crawl{b: l.b}
	c.run(l.w.GitHub.BaseURL()+"/", l.w.URL+"/status")
	l.t.Logf("checked %d pages: %s", len(c.pages), strings.Join(slices.Compact(c.pages), " "))
	for _, want := range []string{
		"/", "/status", "/tasks/acme/slug/N", "/tasks/acme/slug/N/runs/N", "/tasks/acme/slug/N/summary.json", "/acme/slug", "/acme/slug/issues/N", "/acme/slug/pull/N", "/acme/slug/pull/N/commits",
		"/acme/slug/pull/N/files", "/acme/slug/issues/new", "/acme/slug/commit/X", "/acme/slug/tree/X", "/acme/slug/blob/X",
		"/_sim/deliveries", "/_sim/deliveries?id", "/_sim/calls", "/_sim/people", "/LOGIN", "/metrics", "/status.json", "/pause", "/vms", "/vms.json",
	} {
		if !slices.Contains(c.pages, want) {
			l.t.Errorf("no page links to %s", want)
		}
	}
}
