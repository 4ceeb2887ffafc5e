package admin

import (
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// tone groups phases by who has to act; it is a class of the style sheet.
func tone(p state.Phase) string {
	switch {
	case p == state.PhaseFailed:
		return "bad"
	case p == state.PhaseInterrupted:
		return "warn"
	case p.AwaitsApproval(), p == state.PhaseAwaitingAnswer, p == state.PhasePROpen:
		return "people"
	case p == state.PhaseDone:
		return "good"
	case p.Working():
		return "busy"
	}
	return "calm"
}

// postWords is what people read for a comment of the bot.
func postWords(kind string) string {
	switch state.PostKind(kind) {
	case state.PostPROpened:
		return "pull request opened"
	case state.PostRound:
		return "what a round did"
	case state.PostThread:
		return "answer in a thread"
	case state.PostEnded:
		return "end"
	}
	return words.Plain(kind)
}

// viaWords says how an approval was given, after whose it was.
func viaWords(v state.ApprovalVia) string {
	switch v {
	case state.ViaReaction:
		return "by " + words.Via(v)
	case state.ViaBox:
		return "by the box"
	case state.ViaCommand:
		return "by command"
	}
	return words.Via(v)
}

// vmWords says what a kind of VM keeps apart.
func vmWords(kind string) string {
	what, apart := words.VM(kind)
	if apart != "" {
		what += ": " + apart
	}
	return what
}
