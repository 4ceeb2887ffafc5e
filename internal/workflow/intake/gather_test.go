package intake

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// TestAddressedComments: replies between people are not for errand, unless it started the thread or is mentioned.
func TestAddressedComments(t *testing.T) {
	t.Parallel()
	me := forge.App{Slug: "errand", BotID: 9}
	people := map[string]state.Person{"ada": {ID: 1, Login: "ada"}, "bob": {ID: 2, Login: "bob"}, "errand": {ID: 9, Bot: true}, "ci": {ID: 8, Bot: true}, "ghost": {Login: "ghost"}}
	tests := map[string]struct {
		thread string // one comment a line
		want   []int  // indices
	}{
		"a person starts it":                  {"ada: Why?", []int{0}},
		"a reply to a person":                 {"ada: Why?\nbob: I wonder, too.", []int{0}},
		"a chat":                              {"ada: Why?\nbob: I wonder.\nada: Let us ask.\nbob: Yes.", []int{0}},
		"an addition":                         {"ada: Why?\nada: And why not?\nada: Really.\nbob: Hm.", []int{0, 1, 2}},
		"a reply to errand":                   {"ada: Why?\nerrand: Because.\nbob: Not convinced.", []int{0, 2}},
		"an addition to a reply to errand":    {"ada: Why?\nerrand: Because.\nbob: No.\nbob: Change it.", []int{0, 2, 3}},
		"a chat after errand's answer":        {"ada: Why?\nerrand: Because.\nbob: Ada?\nada: Fine by me.", []int{0, 2}},
		"a reply to somebody else":            {"ada: Why?\nerrand: Because.\nbob: @ada what do you think?", []int{0}},
		"the answer to such a reply":          {"ada: Why?\nerrand: Because.\nbob: @ada what about it?\nada: It is fine.", []int{0}},
		"to somebody else and to errand":      {"ada: Why?\nerrand: Because.\nbob: @ada I wonder. @errand please explain.", []int{0, 2}},
		"about somebody else":                 {"ada: Why?\nerrand: Because.\nbob: @ada is right.", []int{0, 2}},
		"a thread for somebody else":          {"bob: @ada what do you think?\nada: Fine.", nil},
		"thanks to errand":                    {"ada: Why?\nerrand: Because.\nada: Thanks!", []int{0}},
		"a request after thanks":              {"ada: Why?\nerrand: Because.\nada: Thanks! Please say so in a comment.", []int{0, 2}},
		"a request in a comment after thanks": {"ada: Why?\nerrand: Because.\nada: Thanks!\nada: Please say so in a comment.", []int{0, 3}},
		"a question after another's thanks":   {"ada: Why?\nerrand: Because.\nada: Thanks!\nbob: But why not?", []int{0, 3}},
		"thanks between people":               {"ada: Why?\nbob: It is fine.\nada: Thanks!\nbob: You are welcome to it.", []int{0}},
		"a reply to others in errand's":       {"errand: Look here.\nada: @bob shall we?\nbob: Yes.", []int{2}},
		"errand is mentioned":                 {"ada: Why?\nbob: Right, @errand please explain.", []int{0, 1}},
		"somebody else with a similar name":   {"ada: Why?\nbob: Right, @errand-fan please explain, not me@errand.", []int{0}},
		"a mention in code":                   {"ada: Why?\nbob: `@errand` is a bot.", []int{0}},
		"errand started it":                   {"errand: Look here.\nada: Hm.\nbob: Hm?", []int{1, 2}},
		"a remark by a bot":                   {"ci: Coverage fell.\nada: Please add a test.\nbob: Agreed.", []int{0, 1}},
		"deleted accounts may be two persons": {"ada: Why?\nghost: a\nghost: b", []int{0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []forge.Comment
			for line := range strings.SplitSeq(tt.thread, "\n") {
				who, body, _ := strings.Cut(line, ": ")
				list = append(list, forge.Comment{Author: people[who], Body: body})
			}
			var got []int
			for i, ok := range addressedComments(list, me) {
				if ok {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestLastAnswered: an answer by errand answers what the agent read, not what people wrote while it worked.
func TestLastAnswered(t *testing.T) {
	t.Parallel()
	me := forge.App{Slug: "errand", BotID: 9}
	ada, errand := state.Person{ID: 1, Login: "ada"}, state.Person{ID: 9, Bot: true}
	answer := func(id int64, key string) forge.Comment {
		return forge.Comment{ID: id, Author: errand, Body: "Done.\n\n" + comment.Marker(key)}
	}
	why, also := forge.Comment{ID: 11, Author: ada, Body: "Why?"}, forge.Comment{ID: 12, Author: ada, Body: "And why not?"}
	for name, tt := range map[string]struct {
		thread []forge.Comment
		want   int64
	}{
		"no answer":                   {[]forge.Comment{why, also}, 0},
		"an answer to all":            {[]forge.Comment{why, also, answer(13, "1.answer-1-thread:11:12")}, 12},
		"written while it worked":     {[]forge.Comment{why, also, answer(13, "1.answer-1-thread:11:11")}, 11},
		"answered in the next round":  {[]forge.Comment{why, also, answer(13, "1.answer-1-thread:11:11"), answer(14, "1.answer-2-thread:11:12")}, 12},
		"another life":                {[]forge.Comment{why, answer(13, "2.answer-1-thread:11:11"), also}, 11},
		"another comment by errand":   {[]forge.Comment{why, answer(13, "1.reply-status-11"), also}, 13},
		"without a marker":            {[]forge.Comment{why, {ID: 13, Author: errand, Body: "Done."}, also}, 13},
		"a person copied the marker":  {[]forge.Comment{why, {ID: 13, Author: ada, Body: comment.Marker("1.answer-1-thread:11:11")}}, 0},
		"the marker is not by number": {[]forge.Comment{why, answer(13, "1.answer-1-thread:11:x")}, 13},
	} {
		if got := step.LastAnswered(tt.thread, me); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
