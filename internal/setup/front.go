package setup

import "context"

// A front is how a setup talks with its operator: in a terminal, or on a page in a browser. Only the setup calls its methods, one at a
// time.
type front interface {
	// open begins the setup, and returns a function that ends it.
	open(ctx context.Context, r *run) (end func() error, err error)
	// interactive reports whether somebody can answer.
	interactive() bool
	// say shows a text.
	say(text string)
	// ask asks those of the questions that apply and are open, and stores the answers with run.remember.
	ask(ctx context.Context, r *run, list []Question) error
	// begin announces a step. If the operator leaves the step, the context that it returns ends, and its cause is a decision.
	begin(ctx context.Context, n int, s step, ways []decision) (context.Context, context.CancelFunc)
	// end records how the current step ended.
	end(how outcome)
	// failed shows why the current step failed, and returns one of the ways to continue, or stop.
	failed(ctx context.Context, err error, ways []decision) decision
	// page returns a page on this host that can show the form of an App, and a function to call when the form is not needed any more.
	page(ctx context.Context, r *run) (s *site, release func() error, err error)
	// finished shows the last text, under a title, and returns again if the operator wants to repeat the setup, or stop.
	finished(ctx context.Context, title, text string, ways []decision) decision
	// again and skip say how to repeat a failed step, and how to continue without it.
	again() string
	skip(name string) string
	// repeat says how to run a complete setup again: by a command, or by finished if that offers it.
	repeat(command string, offered bool) string
}

// A decision is how an operator continues. Its value is that of the page's button.
type decision string

// The decisions.
const (
	stop     decision = "stop" // end the program
	again    decision = "again"
	skipStep decision = "skip"
	back     decision = "back" // begin with the first question again; earlier answers are the defaults
)

// Error makes a decision the cause of the end of a context.
func (d decision) Error() string { return "the operator chose " + string(d) }

// An outcome is how a step ended.
type outcome string

// The outcomes.
const (
	done       outcome = "done"
	doneBefore outcome = "done before"
	skipped    outcome = "skipped"
)

// ways returns how an operator can leave a step, or continue after it failed.
func (r *run) ways(s step, failed bool) []decision {
	var list []decision
	if failed {
		list = append(list, again)
	}
	list = append(list, skipStep)
	if !r.loaded && s.name != steps()[0].name { // a configuration has the answers
		list = append(list, back)
	}
	return list
}
