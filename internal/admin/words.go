package admin

import (
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// tone groups phases by who must act next. It is a CSS class.
func tone(p state.Phase) string {
	switch {
	case p == state.PhaseFailed:
		return "bad"
	case p == state.PhaseInterrupted:
		return "warn"
	case p.AwaitsApproval(), p == state.PhaseAwaitingAnswer, p == state.PhasePROpen, p == state.PhasePRClosed:
		return "people"
	case p == state.PhaseDone:
		return "good"
	case p.Working():
		return "busy"
	}
	return "calm"
}

// toneOf returns the tone of a task in a phase; a task that is held up is not shown as working.
func toneOf(p state.Phase, heldUp bool) string {
	if heldUp {
		return "warn"
	}
	return tone(p)
}

// postWords names a kind of comment by the bot.
func postWords(kind string) string {
	switch state.PostKind(kind) {
	case state.PostPROpened:
		return "pull request opened"
	case state.PostReplaced:
		return "pull request replaced"
	case state.PostPRClosed:
		return "pull request closed"
	case state.PostRound:
		return "result of a review round"
	case state.PostThread:
		return "reply in a thread"
	case state.PostEnded:
		return "end"
	}
	return words.Plain(kind)
}

// viaWords describes how an approval was given.
func viaWords(v state.ApprovalVia) string {
	switch v {
	case state.ViaReaction:
		return "by " + words.Via(v)
	case state.ViaBox:
		return "with the checkbox"
	case state.ViaCommand:
		return "by command"
	}
	return words.Via(v)
}

// vmWords describes the isolation of a kind of VM.
func vmWords(kind string) string {
	what, apart := words.VM(kind)
	if apart != "" {
		what += ": " + apart
	}
	return what
}
