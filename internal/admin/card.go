package admin

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// card is the summary of a task.
type card struct {
	Task  string      `json:"task"` // REPOSITORY_ID/ISSUE_NUMBER
	Repo  string      `json:"repo"` // OWNER/NAME
	Issue int         `json:"issue"`
	Title string      `json:"title"`
	Page  string      `json:"page"` // path of the task's page
	URL   string      `json:"url"`  // URL of the issue
	Phase state.Phase `json:"phase"`
	Since time.Time   `json:"since"` // start of the phase
	// Next describes in a sentence the next step, or who must act.
	Next    string      `json:"next"`
	Awaits  string      `json:"awaits,omitempty"` // what it waits for, in two or three words: "an approval", "a VM"
	Begun   time.Time   `json:"begun"`
	Purged  *time.Time  `json:"purged,omitempty"` // when the task's texts were deleted
	Round   int         `json:"round,omitempty"`
	Waiting *waitCard   `json:"waiting,omitempty"`
	Run     *runCard    `json:"run,omitempty"` // the active run
	Runs    int         `json:"runs"`          // number of runs
	Money   moneyCard   `json:"money"`
	VM      *vmCard     `json:"vm,omitempty"`
	Asleep  *asleepCard `json:"asleep,omitempty"` // set for a suspended task, which has no VM
	Branch  string      `json:"branch,omitempty"`
	PR      *pullCard   `json:"pull_request,omitempty"`
	End     *endingCard `json:"end,omitempty"`

	heldUp bool
}

// Tone returns the tone of the phase, or that of a task that is held up.
func (c *card) Tone() string { return toneOf(c.Phase, c.heldUp) }

type waitCard struct {
	Kind   state.WaitKind `json:"kind"`
	Detail string         `json:"detail"`
	Since  time.Time      `json:"since"`
	Until  *time.Time     `json:"until,omitempty"`
	// Place is the place in the queue for a VM, from 1; absent if the task waits for something else.
	Place int `json:"place,omitempty"`
}

type runCard struct {
	ID    string     `json:"id"`
	Seq   int        `json:"seq"`
	Kind  string     `json:"kind"`
	State string     `json:"state"`
	Doing string     `json:"doing,omitempty"`
	Turns int        `json:"turns,omitempty"`
	Sign  *time.Time `json:"sign,omitempty"` // time of the last activity
}

type moneyCard struct {
	Spent        float64 `json:"spent"`
	Cap          float64 `json:"cap"`
	Subscription bool    `json:"subscription,omitempty"` // part of the use is on a subscription, which has no cost per call
	Words        string  `json:"words"`                  // the amount spent as text: "$1.20", "subscription"
	of           string  // the same with the cap
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	AgentSeconds float64 `json:"agent_seconds"`
}

// Of returns the amount spent and the cap, as text.
func (m moneyCard) Of() string { return m.of }

type vmCard struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Kind     string `json:"kind"`
}

// asleepCard describes the saved work of a suspended task.
type asleepCard struct {
	Mode  string    `json:"mode"`
	Bytes int64     `json:"bytes,omitempty"`
	At    time.Time `json:"at"`
}

type pullCard struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	State  string `json:"state"`
	Draft  bool   `json:"draft,omitempty"`
	Checks string `json:"checks,omitempty"`
	// ChecksReason says why, and ChecksOptional names checks that fail but are not required.
	ChecksReason   string `json:"checks_reason,omitempty"`
	ChecksOptional string `json:"checks_optional,omitempty"`
	Ready          bool   `json:"ready,omitempty"`
	// MergeWaits is why errand has not merged it yet, if it is to.
	MergeWaits string `json:"merge_waits,omitempty"`
}

type endingCard struct {
	Reason string             `json:"reason"`
	Hint   string             `json:"hint,omitempty"`
	Class  state.FailureClass `json:"class,omitempty"`
}

// newCard returns the card of a task.
func newCard(t *state.Task) card {
	c := card{
		Task: t.Key.String(), Repo: t.Repo.FullName(), Issue: t.Key.Issue, Title: transcript.Cut(t.Frozen.Title).Text,
		Page: taskPath(t), URL: issueURL(t), Phase: t.Phase, Since: t.Since, Next: nextStep(t), Awaits: awaits(t), Begun: t.Trigger.At, Round: t.Round,
		Runs: len(t.Runs), Branch: t.Branch.Name, heldUp: t.IsHeldUp(),
		Money: moneyCard{
			Spent:        float64(t.Money.MicroUSD) / 1e6,
			Cap:          float64(t.Money.CapMicroUSD) / 1e6,
			Subscription: t.Money.Subscription,
			Words:        words.Spent(t.Money),
			of:           words.SpentOf(t.Money),
			InputTokens:  t.Money.InputTokens,
			OutputTokens: t.Money.OutputTokens,
			AgentSeconds: t.AgentTime().Seconds(),
		},
	}
	if w := t.Waiting; w != nil && !t.Ended() {
		c.Waiting = &waitCard{Kind: w.Kind, Detail: transcript.Cut(w.Detail).Text, Since: w.Since, Until: known(w.Until), Place: w.Place}
	}
	if r := t.Run; r != nil {
		c.Runs++
		c.Run = &runCard{
			ID:    r.ID,
			Seq:   r.Seq,
			Kind:  string(r.Kind),
			State: string(r.State),
			Doing: transcript.Cut(r.Doing).Text,
			Turns: r.Turns,
			Sign:  known(r.LastActivity),
		}
	}
	if vm := t.VM; vm != nil {
		c.VM = &vmCard{Name: vm.Name, Provider: vm.Provider, Kind: vm.Kind}
	}
	if a := t.Suspended; a != nil && t.VM == nil {
		c.Asleep = &asleepCard{Mode: string(a.Mode), Bytes: a.Bytes, At: a.At}
	}
	if pr := t.PR; pr != nil {
		c.PR = &pullCard{
			Number: pr.Number, URL: pr.URL, State: string(pr.State), Draft: pr.Draft, Checks: pr.Checks,
			ChecksReason: pr.ChecksReason, ChecksOptional: pr.ChecksOptional, Ready: pr.Ready, MergeWaits: pr.MergeWaits,
		}
	}
	if c.Purged = known(t.Purged); c.Purged != nil {
		c.Title = "(purged)"
		return c
	}
	if e := t.End; e != nil && (t.Ended() || t.Phase == state.PhaseFailed) {
		c.End = &endingCard{Reason: transcript.Cut(e.Reason).Text, Hint: transcript.Cut(e.Hint).Text, Class: e.Class}
	}
	return c
}

// limitsOfAll matches sentences of errand with the spending or the limits of all tasks together.
var limitsOfAll = regexp.MustCompile(`all tasks together|\bVMs and images have cost\b`)

// withoutLimits returns a sentence for people who are not operators, which is empty if it names the limits of all tasks together.
func withoutLimits(s string) string {
	if limitsOfAll.MatchString(s) {
		return ""
	}
	return s
}

// withoutLimits returns the card for people who are not operators.
func (c *card) withoutLimits() *card {
	if c.Waiting == nil {
		return c
	}
	less, wait := *c, *c.Waiting
	if less.Waiting = &wait; wait.Kind == state.WaitMoney || wait.Kind == state.WaitVM {
		wait.Detail = "" // its kind says enough
	}
	wait.Detail = withoutLimits(wait.Detail)
	return &less
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func taskPath(t *state.Task) string {
	return fmt.Sprintf("/tasks/%s/%d", t.Repo.FullName(), t.Key.Issue)
}

func issueURL(t *state.Task) string {
	if t.Repo.URL == "" {
		return ""
	}
	return fmt.Sprintf("%s/issues/%d", strings.TrimSuffix(t.Repo.URL, "/"), t.Key.Issue)
}
