package setup

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// webFront is a front for people at a browser. The terminal shows the output, too.
type webFront struct {
	site *site
	out  io.Writer
}

// finishTimeout is how long the last page is shown.
const finishTimeout = time.Hour

func newWebFront(out io.Writer) (*webFront, error) {
	s, err := newSite(false)
	if err != nil {
		return nil, err
	}
	for _, one := range steps() {
		s.steps = append(s.steps, progressStep{Title: one.title, State: toDo})
	}
	return &webFront{s, out}, nil
}

func (w *webFront) open(ctx context.Context, r *run) (func() error, error) {
	if err := w.site.start(ctx, r); err != nil {
		return nil, err
	}
	r.say("%sThis command has to run until the setup is complete. Ctrl-C loses nothing: run it again to continue.\n", w.site.announcement("answer the questions"))
	return func() error { return w.site.shutDown(ctx) }, nil
}

func (w *webFront) interactive() bool { return true }

func (w *webFront) say(text string) {
	_, _ = io.WriteString(w.out, text)
	w.site.change(func() {
		one := &w.site.steps[w.site.current]
		if one.State == running {
			one.Output += text
			one.Output = one.Output[max(0, len(one.Output)-maxOutput):]
		}
	})
}

func (w *webFront) again() string { return "choose Try again" }

func (w *webFront) skip(string) string { return "choose Skip this step" }

func (w *webFront) repeat(command string, offered bool) string {
	if offered {
		return "choose Run the setup again"
	}
	return "close this page, and run `" + command + "`"
}

func (w *webFront) page(context.Context, *run) (*site, func() error, error) {
	return w.site, func() error {
		w.work()
		return nil
	}, nil
}

// work shows that the operator has nothing to do in the current step, apart from leaving it.
func (w *webFront) work() {
	w.site.mu.Lock()
	ways := w.site.screen.Ways
	w.site.mu.Unlock()
	w.site.show(screen{Kind: working, Ways: ways})
}

func (w *webFront) begin(ctx context.Context, n int, s step, ways []decision) (context.Context, context.CancelFunc) {
	_, _ = io.WriteString(w.out, header(n, s))
	own, leave := context.WithCancelCause(ctx)
	w.site.change(func() {
		w.site.current, w.site.leave = n, leave
		w.site.steps[n].State, w.site.steps[n].Output = running, ""
		for i := n + 1; i < len(w.site.steps); i++ {
			w.site.steps[i].State, w.site.steps[i].Output = toDo, ""
		}
		w.site.replace(screen{Kind: working, Ways: ways}) // at once: a button of the last screen does not leave this step
	})
	return own, func() {
		w.site.change(func() { w.site.leave = nil })
		leave(nil)
	}
}

func (w *webFront) end(how outcome) {
	w.site.change(func() { w.site.steps[w.site.current].State = string(how) })
}

func (w *webFront) failed(ctx context.Context, err error, ways []decision) decision {
	_, _ = fmt.Fprintf(w.out, "%v\nThe page shows how to continue.\n", err)
	w.site.change(func() {
		w.site.leave = nil
		if one := &w.site.steps[w.site.current]; one.State == running {
			one.State = stepFails
		}
		w.site.replace(screen{Kind: failing, Text: err.Error(), Ways: ways})
	})
	p, err := w.site.await(ctx)
	if err != nil {
		return stop
	}
	return p.how
}

func (w *webFront) finished(ctx context.Context, title, text string, ways []decision) decision {
	_, _ = io.WriteString(w.out, text+"\nThe page shows this, too. Close it there, or press Ctrl-C.\n")
	w.site.show(screen{Kind: finishing, Notice: title, Text: text, Ways: append(ways, stop)})
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	p, err := w.site.await(ctx)
	if err != nil {
		return stop
	}
	return p.how
}

// field is a question on the page.
type field struct {
	Question

	Value   string // that is shown; empty for secrets
	Problem string
	Notice  string
	Held    bool   // a secret was entered before
	answer  string // earlier answer or default when it was shown
}

// Masked reports whether the page shows the answer nowhere.
func (f field) Masked() bool { return f.masked() }

// Choices are the possible answers, or none.
func (f field) Choices() []string { return f.choices }

// ask shows questions as one form, until all answers are valid. Answers can lead to further questions and to other defaults, which are
// then shown in the form as well.
func (w *webFront) ask(ctx context.Context, r *run, list []Question) error {
	var tried *attempt
	for {
		fields, err := r.fields(list, tried)
		if err != nil {
			return err
		}
		if len(fields) == 0 || tried != nil && tried.complete {
			for _, q := range list {
				if q.applies(r) && r.held[q.Key] == "" {
					r.sayKept(q)
				}
			}
			break
		}
		next := screen{Kind: asking, Fields: fields}
		if tried != nil {
			next.Notice = tried.notice()
		}
		w.site.mu.Lock()
		next.Ways = w.site.screen.Ways
		w.site.mu.Unlock()
		w.site.show(next)
		p, err := w.site.await(ctx)
		if err != nil {
			return err
		}
		if tried, err = r.try(list, fields, p.values); err != nil {
			return err
		}
	}
	w.work()
	return nil
}

// attempt is what became of a posted form.
type attempt struct {
	complete bool
	problems map[string]string // by the keys of questions
	typed    map[string]string // answers with problems
	outdated map[string]bool   // questions whose default depends on an answer that was changed
}

func (a *attempt) notice() string {
	if len(a.problems) > 0 {
		return "Some answers cannot be used yet."
	}
	return "Your answers lead to further questions. Check the ones that are new or changed."
}

// fields returns the questions that the operator has to answer.
func (r *run) fields(list []Question, tried *attempt) ([]field, error) {
	if tried == nil {
		tried = &attempt{problems: r.refused}
	}
	var out []field
	for _, q := range list {
		if !q.applies(r) {
			continue
		}
		isOpen, err := r.isOpen(q)
		if err != nil {
			return nil, err
		}
		if !isOpen {
			continue
		}
		f := field{Question: q, answer: r.answer(q.Key), Problem: tried.problems[q.Key]}
		if q.masked() {
			f.Held = r.held[q.Key] != ""
		} else if f.Value = tried.typed[q.Key]; f.Value == "" {
			f.Value = f.answer
		}
		if tried.outdated[q.Key] {
			f.Notice = "Your other answers have changed this default."
		}
		out = append(out, f)
	}
	return out, nil
}

// try takes posted answers. It stores those that are valid and differ from the default, so that an interruption loses nothing, and all
// others once the form is complete.
func (r *run) try(list []Question, fields []field, values url.Values) (*attempt, error) {
	a := &attempt{complete: true, problems: map[string]string{}, typed: map[string]string{}, outdated: map[string]bool{}}
	var defaults []Question
	for _, q := range list {
		if !q.applies(r) {
			continue
		}
		if isOpen, err := r.isOpen(q); err != nil || !isOpen {
			if err != nil {
				return nil, err
			}
			continue
		}
		delete(r.refused, q.Key)
		at := slices.IndexFunc(fields, func(f field) bool { return f.Key == q.Key })
		if at < 0 {
			a.complete = false
			continue
		}
		value, current := strings.TrimSpace(values.Get(q.Key)), r.answer(q.Key)
		isDefault := !q.masked() && value == fields[at].answer
		problem := q.validate(r, value)
		switch {
		case q.masked() && value == "" && r.held[q.Key] != "":
			continue
		case isDefault && value != current:
			a.complete, a.outdated[q.Key] = false, true
			continue
		case problem != nil:
			a.complete, a.problems[q.Key] = false, problem.Error()
			if !q.masked() {
				a.typed[q.Key] = value
			}
			continue
		case isDefault:
			defaults = append(defaults, q)
			continue
		}
		if err := r.remember(q, value); err != nil {
			return nil, err
		}
	}
	if a.complete {
		for _, q := range defaults {
			if err := r.remember(q, r.answer(q.Key)); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}
