package walk

import (
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/state"
)

// savedWorld is a walk's world without errand's database, as saved by an older version: GitHub, the VMs, and errand's
// files. People are identified by their IDs, errand by 0.
type savedWorld struct {
	Repo     int64                           `json:"repo"`
	Seed     uint64                          `json:"seed"`
	Now      time.Time                       `json:"now"`
	Config   string                          `json:"config,omitempty"`
	Last     int                             `json:"last"`
	IDs      int64                           `json:"ids"`
	GUIDs    int                             `json:"guids"`
	People   []savedPerson                   `json:"people"`
	Issues   []savedIssue                    `json:"issues"`
	Branches map[string]string               `json:"branches"`
	Deleted  []string                        `json:"deleted,omitempty"`
	Commits  map[string]savedCommit          `json:"commits"`
	Hooks    []savedHook                     `json:"hooks,omitempty"`
	Failed   []savedHook                     `json:"failed,omitempty"`
	Blocker  int                             `json:"blocker,omitempty"`
	Machines []savedMachine                  `json:"machines,omitempty"`
	Runs     int                             `json:"runs"`
	Plans    int                             `json:"plans"`
	Files    map[string]*changeset.Changeset `json:"files,omitempty"`
	Asleep   map[string][]byte               `json:"asleep,omitempty"`
}

type savedPerson struct {
	state.Person
	May  state.Permission `json:"may"`
	Lost time.Time        `json:"lost,omitzero"`
	Held bool             `json:"held,omitempty"`
}

type savedIssue struct {
	Number   int            `json:"number"`
	Node     string         `json:"node"`
	Author   int64          `json:"author,omitempty"`
	Created  time.Time      `json:"created"`
	Texts    []savedText    `json:"texts"`
	Closed   bool           `json:"closed,omitempty"`
	ClosedAt time.Time      `json:"closed_at,omitzero"`
	Labels   []string       `json:"labels,omitempty"`
	Assigned bool           `json:"assigned,omitempty"`
	Events   []savedFact    `json:"events,omitempty"`
	Comments []savedComment `json:"comments,omitempty"`
	Thumbs   []savedThumb   `json:"thumbs,omitempty"`
	Eyes     time.Time      `json:"eyes,omitzero"`
	Pull     *savedPull     `json:"pull,omitempty"`
}

type savedText struct {
	Title string    `json:"title,omitempty"`
	Body  string    `json:"body"`
	By    int64     `json:"by,omitempty"`
	At    time.Time `json:"at"`
}

type savedFact struct {
	What  string    `json:"what"`
	About string    `json:"about"`
	By    int64     `json:"by"`
	At    time.Time `json:"at"`
}

type savedComment struct {
	ID       int64        `json:"id"`
	Author   int64        `json:"author,omitempty"`
	Bodies   []savedText  `json:"bodies"`
	Created  time.Time    `json:"created"`
	Thumbs   []savedThumb `json:"thumbs,omitempty"`
	Eyes     bool         `json:"eyes,omitempty"`
	Gone     bool         `json:"gone,omitempty"`
	Reviewed int64        `json:"reviewed,omitempty"`
}

type savedThumb struct {
	Node string    `json:"node"`
	By   int64     `json:"by"`
	At   time.Time `json:"at"`
}

type savedPull struct {
	Head     string         `json:"head"`
	Base     string         `json:"base"`
	Title    string         `json:"title"`
	Open     bool           `json:"open,omitempty"`
	Merged   bool           `json:"merged,omitempty"`
	MergedBy int64          `json:"merged_by,omitempty"`
	Threads  []savedThread  `json:"threads,omitempty"`
	Reviews  []forge.Review `json:"reviews,omitempty"`
	Ours     bool           `json:"ours,omitempty"`
}

type savedThread struct {
	Top      int64          `json:"top"`
	Comments []savedComment `json:"comments"`
	Resolved bool           `json:"resolved,omitempty"`
}

type savedCommit struct {
	Parent   string `json:"parent,omitempty"`
	Conflict bool   `json:"conflict,omitempty"`
}

type savedHook struct {
	GUID    string    `json:"guid"`
	Event   string    `json:"event"`
	Payload string    `json:"payload"`
	At      time.Time `json:"at"`
	Due     time.Time `json:"due,omitzero"`
	Through bool      `json:"through,omitempty"`
}

type savedMachine struct {
	Name    string             `json:"name"`
	Owner   string             `json:"owner"`
	Ended   bool               `json:"ended,omitempty"`
	Branch  string             `json:"branch,omitempty"`
	Root    string             `json:"root,omitempty"`
	Work    []changeset.Commit `json:"work,omitempty"`
	Blobs   map[string][]byte  `json:"blobs,omitempty"`
	Garbled string             `json:"garbled,omitempty"`
	Runs    []savedRun         `json:"runs,omitempty"`
}

type savedRun struct {
	Spec    runner.Spec   `json:"spec"`
	Step    string        `json:"step"`
	Started time.Time     `json:"started"`
	Ends    time.Time     `json:"ends"`
	Lines   []runlog.Line `json:"lines,omitempty"`
	Exit    *runlog.Exit  `json:"exit,omitempty"`
	Mood    string        `json:"mood,omitempty"`
	Budget  int64         `json:"budget,omitempty"`
	Cost    int64         `json:"cost,omitempty"`
	Life    int           `json:"life,omitempty"`
	Token   string        `json:"token,omitempty"`
	Asked   bool          `json:"asked,omitempty"`
}
