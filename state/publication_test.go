package state

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPublicationsAreStored: a publication is stored before the branch is moved, and confirmed afterwards. What errand cannot know is marked.
func TestPublicationsAreStored(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	work := func(head string) *Work { return &Work{Head: head, Published: []PublishedCommit{{ID: head}}} }
	move := func(x *Task, head string, at, restored time.Time) {
		x.Work = work(head)
		x.BeginPublication(at, restored)
		x.AddPublication(at, restored)
		x.Branch.Head = head
	}
	for name, c := range map[string]struct {
		play func(x *Task)
		want string
	}{
		"two": {func(x *Task) { move(x, "a", begin, time.Time{}); move(x, "b", begin, time.Time{}) }, "a b"},
		"repeated": {func(x *Task) {
			move(x, "a", begin, time.Time{})
			x.BeginPublication(begin, time.Time{})
			x.AddPublication(begin, time.Time{})
		}, "a"},
		"about to be moved": {func(x *Task) { x.Work = work("a"); x.BeginPublication(begin, time.Time{}) }, "a?"},
		"a lost answer": {func(x *Task) {
			x.Work = work("a")
			x.BeginPublication(begin, time.Time{})
			x.Branch.Head = "theirs"
			move(x, "b", begin, time.Time{})
		}, "a? b"},
		"opened by an older version": {func(x *Task) {
			x.Branch.Head = "old"
			move(x, "a", begin, time.Time{})
			move(x, "b", begin, time.Time{})
		}, "-a b"},
		"committed by an older version": {func(x *Task) {
			x.Work = &Work{Head: "old"}
			x.AddPublication(begin, time.Time{})
			x.Branch.Head = "old"
			move(x, "a", begin, time.Time{})
		}, "-a"},
		"restored since": {func(x *Task) {
			move(x, "a", begin, time.Time{})
			move(x, "c", begin.Add(2), begin.Add(1))
			move(x, "d", begin.Add(3), begin.Add(1))
		}, "a -c d"},
		"begun after the restoration":  {func(x *Task) { move(x, "a", begin.Add(2), begin.Add(1)); move(x, "b", begin.Add(3), begin.Add(1)) }, "a b"},
		"nothing that could be stored": {func(x *Task) { x.AddPublication(begin, time.Time{}) }, ""},
		"very often without an answer": {func(x *Task) {
			for n := range MaxUnconfirmed + 3 {
				x.Work = work(fmt.Sprint(n))
				x.BeginPublication(begin, time.Time{})
			}
		}, "-3? 4? 5? 6? 7?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &Task{}
			c.play(x)
			var got []string
			for _, p := range x.Publications {
				text := p.Head
				if p.Gap {
					text = "-" + text
				}
				if p.Unconfirmed {
					text += "?"
				}
				got = append(got, text)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestLastPublication: only what is known to have happened counts.
func TestLastPublication(t *testing.T) {
	t.Parallel()
	x := &Task{}
	if x.LastPublication() != nil {
		t.Error("got one of none")
	}
	x.Publications = []Publication{{Head: "a"}, {Head: "b", Unconfirmed: true}}
	if p := x.LastPublication(); p == nil || p.Head != "a" {
		t.Errorf("got %+v", p)
	}
}
