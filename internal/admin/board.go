package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

const (
	boardTime = 20 * time.Second // for all reads of one page
	maxPoison = 20               // deliveries put aside that are listed
)

// board is what /status shows and /status.json says. Fields are only ever added to it. Money is in
// US dollars, times are RFC 3339 in UTC, durations in seconds.
type board struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	VMs     Source    `json:"vms"`
	// Money is what all tasks together have cost; absent if that is not known.
	Money *purse `json:"money,omitempty"`
	// Phases has all phases in the order of a life, with the number of tasks in each.
	Phases []phaseCount `json:"phases"`
	// Tasks are those that have not ended, in the order of their phases, the longest there first.
	Tasks []*card `json:"tasks"`
	// Open is how many there are of them; Tasks of status.json are a page: those from Offset on.
	Open   int `json:"open"`
	Offset int `json:"offset"`
	// Ended are those that ended last, newest first, at most 100.
	Ended []card `json:"ended"`
	// Poison are webhooks that could not be applied and were put aside, at most 20.
	Poison []poison `json:"poison"`
	// Missing is what the App's installations do not grant.
	Missing []Missing `json:"app_missing,omitempty"`
	// Trouble are providers of models that no run asks for now.
	Trouble []troubled `json:"model_trouble,omitempty"`
}

// purse is what was spent in this day and month of UTC, and may be; a cap of 0 bounds nothing.
type purse struct {
	Today    float64 `json:"today"`
	DayCap   float64 `json:"day_cap"`
	Month    float64 `json:"month"`
	MonthCap float64 `json:"month_cap"`
	// TodayWords and MonthWords are what was spent as people read it: "$1.20", "subscription".
	TodayWords string `json:"today_words"`
	MonthWords string `json:"month_words"`
}

// DayOf is the day's cap as far as it means anything for what was spent, MonthOf the month's; 0 is none.
func (p *purse) DayOf() float64 { return capOf(p.DayCap, p.TodayWords) }

// MonthOf is DayOf for the month.
func (p *purse) MonthOf() float64 { return capOf(p.MonthCap, p.MonthWords) }

func capOf(most float64, spent string) float64 {
	if spent == words.Subscription {
		return 0
	}
	return most
}

func (p *pages) purse(ctx context.Context) (*purse, error) {
	if p.cfg.Spent == nil {
		return nil, nil
	}
	day, month, err := p.cfg.Spent(ctx)
	if err != nil {
		return nil, err
	}
	usd := func(micro int64) float64 { return float64(micro) / 1e6 }
	return &purse{Today: usd(day.MicroUSD), DayCap: usd(day.CapMicroUSD), Month: usd(month.MicroUSD), MonthCap: usd(month.CapMicroUSD), TodayWords: words.Spent(day), MonthWords: words.Spent(month)}, nil
}

type phaseCount struct {
	Phase state.Phase `json:"phase"`
	Tasks int         `json:"tasks"`
}

// poison is a delivery that was put aside.
type poison struct {
	GUID     string    `json:"guid"`
	Event    string    `json:"event"`
	Received time.Time `json:"received"`
	Failures int       `json:"failures"`
	Error    string    `json:"error"`
}

// read gathers the board.
func (p *pages) read(ctx context.Context) (*board, error) {
	ctx, cancel := context.WithTimeout(ctx, boardTime)
	defer cancel()
	b := &board{Version: p.cfg.Version, At: p.cfg.Now().UTC(), VMs: p.source(ctx), Tasks: []*card{}, Poison: []poison{}}
	var err error
	if b.Money, err = p.purse(ctx); err != nil {
		return nil, err
	}
	if p.cfg.Missing != nil {
		b.Missing = p.cfg.Missing()
	}
	if b.Trouble, err = reader(p.cfg.Providers).troubled(ctx, b.At); err != nil {
		return nil, err
	}
	counts, err := p.cfg.Store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	order := map[state.Phase]int{}
	for i, phase := range state.Phases() {
		order[phase] = i
		b.Phases = append(b.Phases, phaseCount{phase, counts[phase]})
	}
	open, err := p.deck.Open(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range open {
		b.Tasks = append(b.Tasks, d.card)
	}
	slices.SortStableFunc(b.Tasks, func(a, b *card) int {
		return cmp.Or(cmp.Compare(order[a.Phase], order[b.Phase]), a.Since.Compare(b.Since))
	})
	b.Open = len(b.Tasks)
	ended, err := p.index.ended(ctx)
	if err != nil {
		return nil, err
	}
	b.Ended = append([]card{}, ended.newest...)
	return b, p.readPoison(ctx, b)
}

func (p *pages) readPoison(ctx context.Context, b *board) error {
	list, err := p.cfg.Store.PoisonDeliveries(ctx, maxPoison)
	for _, d := range list {
		b.Poison = append(b.Poison, poison{GUID: d.GUID, Event: d.Event, Received: d.Received, Failures: d.Failures, Error: cut(d.LastError).Text})
	}
	return err
}

// group is a section of the board.
type group struct {
	Phase state.Phase
	Cards []*card
}

// Groups returns the open tasks by phase, without empty phases.
func (b *board) Groups() (groups []group) {
	for _, c := range b.Tasks {
		if n := len(groups); n == 0 || groups[n-1].Phase != c.Phase {
			groups = append(groups, group{Phase: c.Phase})
		}
		g := &groups[len(groups)-1]
		g.Cards = append(g.Cards, c)
	}
	return groups
}

// Count returns how many open tasks are of a tone.
func (b *board) Count(of string) (n int) {
	for _, c := range b.Tasks {
		if tone(c.Phase) == of {
			n++
		}
	}
	return n
}

// EndedCount returns how many tasks have ended in all.
func (b *board) EndedCount() (n int) {
	for _, c := range b.Phases {
		if c.Phase.Terminal() {
			n += c.Tasks
		}
	}
	return n
}

// Spent says what the open tasks have cost so far.
func (b *board) Spent() string {
	var m state.Money
	for _, c := range b.Tasks {
		m.Add(state.Money{MicroUSD: int64(math.Round(c.Money.Spent * 1e6)), Subscription: c.Money.Subscription})
	}
	return words.Spent(m)
}

// board shows /status.
func (p *pages) board(w http.ResponseWriter, r *http.Request) {
	b, err := p.read(r.Context())
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the board: %w", err))
		return
	}
	p.show(w, r, http.StatusOK, "board", page{Title: "Board", Data: b})
}

// boardJSON answers /status.json.
func (p *pages) boardJSON(w http.ResponseWriter, r *http.Request) {
	b, err := p.read(r.Context())
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the board: %w", err))
		return
	}
	if err := b.page(r.URL.Query()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(b); err != nil && r.Context().Err() == nil {
		p.cfg.Log.Warn().Err(err).Msg("write status.json")
	}
}
