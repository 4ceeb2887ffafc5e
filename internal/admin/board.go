package admin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

const (
	boardTime = 20 * time.Second // timeout for all reads of one page
	maxPoison = 20               // limit of listed failed deliveries
)

// board is the content of /status and /status.json. Fields may be added but never change. Money is in US dollars, times
// are RFC 3339 in UTC, durations in seconds.
type board struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	VMs     Source    `json:"vms"`
	// Money is the cost of all tasks; absent if unknown.
	Money *spending `json:"money,omitempty"`
	// Phases has all phases in the order of a task's life, with the number of tasks in each.
	Phases []phaseCount `json:"phases"`
	// Tasks are the open tasks, in the order of their phases, the longest in a phase first.
	Tasks []*card `json:"tasks"`
	// Open is the total number of open tasks. In status.json Tasks is one page of them, starting at Offset. With ?repo=OWNER/NAME
	// Tasks, Open and Ended are those of one repository.
	Open   int `json:"open"`
	Offset int `json:"offset"`
	// Ended are the most recently ended tasks, newest first, at most 100.
	Ended []card `json:"ended"`
	// Poison are webhooks that permanently failed to apply, at most 20.
	Poison []poison `json:"poison"`
	// Missing are the permissions and events that the App's installations do not grant.
	Missing []Missing `json:"app_missing,omitempty"`
	// Unstarted are issues that carried a trigger before errand watched for it, at most 100 of UnstartedCount.
	Unstarted      []Unstarted `json:"unstarted,omitempty"`
	UnstartedCount int         `json:"unstarted_count,omitempty"`
	// Paused are the pauses that operators ordered, that of everything first, without a name.
	Paused []state.Pause `json:"paused,omitempty"`
	// Pausable states that the page offers to pause and to resume.
	Pausable bool `json:"-"`
	// Trouble are the model providers that are currently unavailable.
	Trouble []troubled `json:"model_trouble,omitempty"`
	// Cut states that the viewer can read more repositories than errand asks GitHub for.
	Cut bool `json:"-"`
}

// spending is the amount spent on this day and in this month (UTC), with caps; a cap of 0 means none.
type spending struct {
	Today    float64 `json:"today"`
	DayCap   float64 `json:"day_cap"`
	Month    float64 `json:"month"`
	MonthCap float64 `json:"month_cap"`
	// TodayWords and MonthWords are the amounts as text: "$1.20", "subscription".
	TodayWords string `json:"today_words"`
	MonthWords string `json:"month_words"`
}

// DayOf returns the day's cap if it applies to the kind of spending, otherwise 0.
func (p *spending) DayOf() float64 { return capOf(p.DayCap, p.TodayWords) }

// MonthOf returns the month's cap if it applies to the kind of spending, otherwise 0.
func (p *spending) MonthOf() float64 { return capOf(p.MonthCap, p.MonthWords) }

func capOf(most float64, spent string) float64 {
	if spent == words.Subscription {
		return 0
	}
	return most
}

func (p *pages) spending(ctx context.Context) (*spending, error) {
	if p.cfg.Spent == nil {
		return nil, nil
	}
	day, month, err := p.cfg.Spent(ctx)
	if err != nil {
		return nil, err
	}
	usd := func(micro int64) float64 { return float64(micro) / 1e6 }
	return &spending{
		Today:      usd(day.MicroUSD),
		DayCap:     usd(day.CapMicroUSD),
		Month:      usd(month.MicroUSD),
		MonthCap:   usd(month.CapMicroUSD),
		TodayWords: words.Spent(day),
		MonthWords: words.Spent(month),
	}, nil
}

type phaseCount struct {
	Phase state.Phase `json:"phase"`
	Tasks int         `json:"tasks"`
}

// poison is a delivery that permanently failed.
type poison struct {
	GUID     string    `json:"guid"`
	Event    string    `json:"event"`
	Received time.Time `json:"received"`
	Failures int       `json:"failures"`
	Error    string    `json:"error"`
}

// read collects the part of the board that a viewer may see.
func (p *pages) read(ctx context.Context, viewer login.Viewer) (*board, error) {
	ctx, cancel := context.WithTimeout(ctx, boardTime)
	defer cancel()
	b := &board{Version: p.cfg.Version, At: p.cfg.Now().UTC(), Tasks: []*card{}, Poison: []poison{}, Cut: !viewer.Complete()}
	if err := p.readTasks(ctx, b, viewer); err != nil || !viewer.Operator() {
		return b, err
	}
	b.VMs = p.source(ctx)
	var err error
	if b.Money, err = p.spending(ctx); err != nil {
		return nil, err
	}
	if p.cfg.Missing != nil {
		b.Missing = p.cfg.Missing()
	}
	if b.Trouble, err = reader(p.cfg.Providers).troubled(ctx, b.At); err != nil {
		return nil, err
	}
	if b.Pausable = p.cfg.Pauses != nil; b.Pausable {
		if b.Paused, err = p.cfg.Pauses.List(ctx); err != nil {
			return nil, err
		}
	}
	p.readUnstarted(b)
	return b, p.readPoison(ctx, b)
}

// readTasks adds the tasks that a viewer may see, and their numbers.
func (p *pages) readTasks(ctx context.Context, b *board, viewer login.Viewer) error {
	open, err := p.openTasks.Open(ctx)
	if err != nil {
		return err
	}
	ended, err := p.endedTasks.ended(ctx)
	if err != nil {
		return err
	}
	var counts map[state.Phase]int
	if viewer.Operator() {
		b.Ended = append([]card{}, ended.newest...)
		if counts, err = p.cfg.Store.Counts(ctx); err != nil {
			return err
		}
	} else {
		b.Ended, counts = ended.visible(viewer.MayRead)
	}
	for _, d := range open {
		if !viewer.MayRead(d.key.Repo) {
			continue
		}
		if viewer.Operator() {
			b.Tasks = append(b.Tasks, d.card)
			continue
		}
		b.Tasks = append(b.Tasks, d.card.withoutLimits())
		counts[d.card.Phase]++
	}
	order := map[state.Phase]int{}
	for i, phase := range state.Phases() {
		order[phase] = i
		b.Phases = append(b.Phases, phaseCount{phase, counts[phase]})
	}
	slices.SortStableFunc(b.Tasks, func(a, b *card) int {
		return cmp.Or(cmp.Compare(order[a.Phase], order[b.Phase]), a.Since.Compare(b.Since))
	})
	b.Open = len(b.Tasks)
	return nil
}

func (p *pages) readPoison(ctx context.Context, b *board) error {
	list, err := p.cfg.Store.PoisonDeliveries(ctx, maxPoison)
	for _, d := range list {
		b.Poison = append(b.Poison, poison{
			GUID:     d.GUID,
			Event:    d.Event,
			Received: d.Received,
			Failures: d.Failures,
			Error:    transcript.Cut(d.LastError).Text,
		})
	}
	return err
}

// group is a section of the board.
type group struct {
	ID, Title, Tone string
	Cards           []*card
}

// Groups returns the open tasks by phase, without empty phases. Tasks that are held up form a separate group,
// because no agent works for them although their phase may say so.
func (b *board) Groups() (groups []group) {
	waiting := group{ID: "waiting", Title: "waiting", Tone: toneOf("", true)}
	for _, c := range b.Tasks {
		id := "phase-" + string(c.Phase)
		switch n := len(groups); {
		case c.heldUp && c.Phase.Working():
			waiting.Cards = append(waiting.Cards, c)
			continue
		case n == 0 || groups[n-1].ID != id:
			groups = append(groups, group{ID: id, Title: words.Phase(c.Phase), Tone: tone(c.Phase)})
		}
		g := &groups[len(groups)-1]
		g.Cards = append(g.Cards, c)
	}
	if len(waiting.Cards) > 0 {
		slices.SortStableFunc(waiting.Cards, func(a, b *card) int { return a.Waiting.Since.Compare(b.Waiting.Since) })
		groups = append(groups, waiting)
	}
	return groups
}

// PausedAll reports whether everything is paused.
func (b *board) PausedAll() bool { return len(b.Paused) > 0 && b.Paused[0].Repo == 0 }

// Count returns the number of open tasks with a tone.
func (b *board) Count(of string) (n int) {
	for _, c := range b.Tasks {
		if c.Tone() == of {
			n++
		}
	}
	return n
}

// EndedCount returns the total number of ended tasks.
func (b *board) EndedCount() (n int) {
	for _, c := range b.Phases {
		if c.Phase.Terminal() {
			n += c.Tasks
		}
	}
	return n
}

// Spent returns the cost of the open tasks so far, as text.
func (b *board) Spent() string {
	var m state.Money
	for _, c := range b.Tasks {
		m.Add(state.Money{MicroUSD: int64(math.Round(c.Money.Spent * 1e6)), Subscription: c.Money.Subscription})
	}
	return words.Spent(m)
}

// board serves /status.
func (p *pages) board(w http.ResponseWriter, r *http.Request) {
	b, err := p.read(r.Context(), login.ViewerOf(r))
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the board: %w", err))
		return
	}
	p.show(w, r, http.StatusOK, "board", page{Title: "Board", Data: b})
}

// boardJSON serves /status.json.
func (p *pages) boardJSON(w http.ResponseWriter, r *http.Request) {
	b, err := p.read(r.Context(), login.ViewerOf(r))
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the board: %w", err))
		return
	}
	if err := b.page(r.URL.Query()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.json(w, r, b)
}
