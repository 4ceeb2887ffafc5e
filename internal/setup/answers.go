package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Answers are answers by the keys of their questions.
type Answers map[string]string

// maxAnswers is the maximum size of a file with answers, in bytes.
const maxAnswers = 64 << 10

// readAnswers reads a file with answers: a YAML mapping of the keys of questions to single values or lists of them.
func readAnswers(path string) (Answers, error) {
	data, err := readBounded(path, maxAnswers)
	if err != nil {
		return nil, fmt.Errorf("read the answers: %w", err)
	}
	var raw map[string]any
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read the answers in %s: %s", path, yaml.FormatError(err, false, false))
	}
	out := Answers{}
	var problems []string
	for key, v := range raw {
		if !slices.ContainsFunc(Questions(), func(q Question) bool { return q.Key == key }) {
			problems = append(problems, fmt.Sprintf("%s: no question has this key", key))
			continue
		}
		text, err := scalar(v)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", key, err))
		}
		out[key] = text
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, fmt.Errorf("%s cannot be used:\n%s\nThe keys are listed in docs/install.md and by `errand setup --help`",
			path, strings.Join(problems, "\n"))
	}
	return out, nil
}

// scalar returns a value of YAML as it would be typed.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case bool:
		if v {
			return "yes", nil
		}
		return "no", nil
	case string, int64, uint64, float64:
		return fmt.Sprint(v), nil
	case []any:
		var list []string
		for _, one := range v {
			if _, nested := one.([]any); nested {
				return "", errors.New("write one value, or a list of them")
			}
			text, err := scalar(one)
			if err != nil {
				return "", err
			}
			list = append(list, text)
		}
		return strings.Join(list, ","), nil
	}
	return "", errors.New("write one value, or a list of them")
}

// readBounded reads a file of at most most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}

// lookup returns an answer that was given already: in the file, or by the operator.
func (r *run) lookup(key string) (string, bool) {
	if v, ok := r.given[key]; ok {
		return v, true
	}
	if v, ok := r.held[key]; ok && questionOf(key).once {
		return v, true
	}
	v, ok := r.progress.Answers[key]
	return v, ok
}

// answer returns an answer or its default, without asking.
func (r *run) answer(key string) string {
	if v, ok := r.lookup(key); ok {
		return v
	}
	return r.fallback(questionOf(key))
}

func (r *run) fallback(q Question) string {
	if q.fallback != nil {
		return q.fallback(r)
	}
	return q.Default
}

// checkAnswers checks the answers of the file, and without a terminal also that none is missing. In a terminal, earlier answers that are
// not valid any more are asked again.
func (r *run) checkAnswers() error {
	var problems []string
	for _, q := range Questions() {
		value, known := r.lookup(q.Key)
		if !known {
			if !r.front.interactive() && !r.loaded && q.Required && q.applies(r) && !q.kept(r) && !r.skipsQuestion(q.Key) {
				problems = append(problems, fmt.Sprintf("%s: an answer is missing: %s", q.Key, q.Text))
			}
			continue
		}
		_, given := r.given[q.Key]
		err := q.validate(r, value)
		if given && q.Secret && isPlain(value) {
			err = errPlain
		}
		if err != nil && q.applies(r) {
			if !given && r.front.interactive() {
				r.say("The earlier answer %q for %s is not valid any more (%v); it is asked again.\n", value, q.Key, err)
				delete(r.progress.Answers, q.Key)
				r.refused[q.Key] = fmt.Sprintf("The earlier answer is not valid any more: %v", err)
				continue
			}
			problems = append(problems, fmt.Sprintf("%s: %v", q.Key, err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("the setup needs other answers:\n%s\nGive them in a file with --answers, or run errand setup in a terminal or with --web",
			strings.Join(problems, "\n"))
	}
	return nil
}

// askAll asks questions, without those that do not apply. run.answer and run.secret have the answers afterwards.
func (r *run) askAll(ctx context.Context, keys ...string) error {
	list := make([]Question, len(keys))
	for i, key := range keys {
		list[i] = questionOf(key)
	}
	return r.front.ask(ctx, r, list)
}

// isOpen reports whether the operator has to answer a question: neither the file with answers, nor a stored secret, nor the App does. It
// remembers an answer of the file.
func (r *run) isOpen(q Question) (bool, error) {
	if v, ok := r.given[q.Key]; ok {
		return false, r.remember(q, v)
	}
	return !q.kept(r) && !q.fixed(r), nil
}

// remember stores an answer for the next setup. Secrets and codes are held in memory only.
func (r *run) remember(q Question, value string) error {
	if q.masked() {
		r.held[q.Key] = value
		return nil
	}
	if old, ok := r.progress.Answers[q.Key]; ok && old == value {
		return nil
	}
	if err := r.forgetDependent(q, value); err != nil {
		return err
	}
	r.progress.Answers[q.Key] = value
	return r.saveProgress()
}

// refuse makes the operator answer a question again.
func (r *run) refuse(q Question, why error) {
	delete(r.held, q.Key)
	r.refused[q.Key] = why.Error()
	r.say("%v. Enter another one.\n", why)
}

// publicURL returns errand's public address, without a slash at its end, or "" if it needs none.
func (r *run) publicURL() string {
	if q := questionOf("public_url"); q.applies(r) {
		return strings.TrimSuffix(r.answer(q.Key), "/")
	}
	return ""
}

func (r *run) askTrigger(ctx context.Context) error {
	r.say("People start a task with a label, by assigning the issue, or by mentioning the App in a comment. GitHub does not let\n" +
		"people assign an App, so assignments need an ordinary account, a machine user, with the triage role.\n")
	return r.askAll(ctx, asksOf("trigger")...)
}
