package costs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Limits of a trace, so that a typing error does not cause an endless simulation.
const (
	maxTasks = 10_000
	maxRuns  = 1_000 // runs of a task
	maxSpan  = Span(366 * 24 * time.Hour)
	maxLine  = 1 << 20
)

// Span is a duration in the format 90s, 30m or 72h.
type Span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}

// Task is one task of a trace; in a file it is one line of JSON.
type Task struct {
	Name string    `json:"task"`
	At   time.Time `json:"at"`
	// Runs are the agent's consecutive runs, at least one.
	Runs []Run `json:"runs"`
	// End is the time from the last run to the end of the task, when its pull request is merged or closed.
	End Span `json:"end"`
}

// Run is one run of an agent.
type Run struct {
	// After is how long the task rests before the run, waiting for people or a back-off; for the first run, the time
	// since the task's arrival.
	After Span `json:"after"`
	// Takes is the duration of the run.
	Takes Span `json:"takes"`
}

// check returns an error if the task is invalid.
func (t *Task) check() error {
	switch {
	case t.At.IsZero():
		return errors.New("`at` is missing: when the task comes, like 2026-01-05T09:00:00Z")
	case len(t.Runs) == 0:
		return errors.New("`runs` is missing: at least one, like {\"after\":\"0s\",\"takes\":\"30m\"}")
	case len(t.Runs) > maxRuns:
		return fmt.Errorf("%d runs; at most %d", len(t.Runs), maxRuns)
	case t.End < 0 || t.End > maxSpan:
		return fmt.Errorf("`end` must be from 0s to %s", time.Duration(maxSpan))
	}
	for i, r := range t.Runs {
		if r.After < 0 || r.After > maxSpan {
			return fmt.Errorf("run %d: `after` must be from 0s to %s", i+1, time.Duration(maxSpan))
		}
		if r.Takes <= 0 || r.Takes > maxSpan {
			return fmt.Errorf("run %d: `takes` must be over 0s and up to %s", i+1, time.Duration(maxSpan))
		}
	}
	return nil
}

// ReadTrace reads one task per line and skips empty lines. Its errors name the line.
func ReadTrace(r io.Reader) ([]Task, error) {
	var trace []Task
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if len(trace) == maxTasks {
			return nil, fmt.Errorf("line %d: more than %d tasks", n, maxTasks)
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var t Task
		if err := d.Decode(&t); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if d.More() {
			return nil, fmt.Errorf("line %d: one task per line", n)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		trace = append(trace, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	if len(trace) == 0 {
		return nil, errors.New("the trace has no task")
	}
	return trace, nil
}

// WriteTrace writes a trace in the format of [ReadTrace].
func WriteTrace(w io.Writer, trace []Task) error {
	e := json.NewEncoder(w)
	for i := range trace {
		if err := e.Encode(&trace[i]); err != nil {
			return fmt.Errorf("write the trace: %w", err)
		}
	}
	return nil
}
