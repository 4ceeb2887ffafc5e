package likeness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// webhooks checks deliveries against GitHub's two published descriptions: the OpenAPI one, which is generated from
// GitHub's code and kept up to date, and the older schemas, which were written by hand from recorded payloads.
type webhooks struct {
	doc, oldDoc map[string]any
	now, old    *schemas
	used        map[string]bool
	real        map[string]bool // event and complaint: differences of GitHub's own recorded payloads
}

// undescribed is the complaint about an event or an action that GitHub does not have.
const undescribed = "GitHub describes no such webhook"

func newWebhooks(doc, oldDoc map[string]any) (*webhooks, error) {
	w := &webhooks{doc: doc, oldDoc: oldDoc, used: map[string]bool{}, real: map[string]bool{}}
	(&strict{doc: doc}).apply()
	lenient(oldDoc["definitions"])
	var err error
	if w.now, err = newSchemas("webhooks.json", doc); err != nil {
		return nil, err
	}
	w.old, err = newSchemas("old.json", oldDoc)
	return w, err
}

// lenient makes the older schemas accept unknown properties, because properties were added since they were written. The
// newer ones reject unknown properties.
func lenient(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["additionalProperties"] == false {
			delete(v, "additionalProperties")
		}
		for _, e := range v {
			lenient(e)
		}
	case []any:
		for _, e := range v {
			lenient(e)
		}
	}
}

// calibrate finds errors of the descriptions: where a payload that GitHub really sent does not match, the simulator's
// need not match.
func (w *webhooks) calibrate(examples map[string][]any) error {
	for event, payloads := range examples {
		for _, p := range payloads {
			found, err := w.complaints(event, p)
			if err != nil {
				return err
			}
			for _, what := range found {
				w.real[event+" "+what] = what != undescribed
			}
		}
	}
	return nil
}

// judge returns the differences of a recorded delivery from GitHub's.
func (w *webhooks) judge(rec record.Record) ([]unlike, error) {
	body, err := parse(rec.Body)
	if err != nil {
		return nil, err
	}
	where := strings.TrimSuffix(rec.Event+"."+text(dig(body, "action")), ".")
	w.used[where] = true
	found, err := w.complaints(rec.Event, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	var out []unlike
	for _, what := range append(found, hookHeaders(rec)...) {
		if !w.real[rec.Event+" "+what] {
			out = append(out, unlike{where: where, what: what})
		}
	}
	return out, nil
}

// complaints checks a payload against both descriptions.
func (w *webhooks) complaints(event string, body any) ([]string, error) {
	action := text(dig(body, "action"))
	key := strings.TrimSuffix(strings.ReplaceAll(event+"-"+action, "_", "-"), "-")
	place := []string{"webhooks", key, "post", "requestBody", "content", "application/json", "schema"}
	if dig(w.doc, place...) == nil {
		return []string{undescribed}, nil
	}
	out, err := w.now.judge(body, place...)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{event + "$" + action, event + "_event"} {
		if dig(w.oldDoc, "definitions", name) == nil {
			continue
		}
		found, err := w.old.judge(body, "definitions", name)
		if err != nil {
			return nil, err
		}
		for _, what := range found {
			out = append(out, "older schema: "+what)
		}
		break
	}
	return out, nil
}

// hookHeaders checks the headers sent with a payload.
func hookHeaders(rec record.Record) []string {
	var out []string
	for _, h := range []string{
		"User-Agent", "X-Github-Hook-Id", "X-Github-Event", "X-Github-Hook-Installation-Target-Id", "X-Github-Hook-Installation-Target-Type",
		"X-Github-Delivery", "X-Hub-Signature-256",
	} {
		if rec.Header.Get(h) == "" {
			out = append(out, "the delivery lacks the header "+h)
		}
	}
	if rec.Header.Get("X-Github-Event") != rec.Event {
		out = append(out, "the delivery names the event "+rec.Header.Get("X-Github-Event"))
	}
	slices.Sort(out)
	return out
}
