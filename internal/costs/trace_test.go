package costs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadTrace(t *testing.T) {
	t.Parallel()
	const good = `{"task":"a","at":"2026-01-05T09:00:00Z","runs":[{"after":"0s","takes":"30m"},{"after":"2h","takes":"10m"}],"end":"24h"}`
	for name, tt := range map[string]struct{ text, want string }{
		"one":              {good + "\n\n", ""},
		"none":             {"\n", "the trace has no task"},
		"no JSON":          {good + "\nhello", "line 2: invalid character"},
		"unknown key":      {`{"task":"a","when":1}`, `line 1: json: unknown field "when"`},
		"two on a line":    {good + good, "line 1: one task per line"},
		"no time":          {`{"task":"a","runs":[{"takes":"1m"}]}`, "line 1: `at` is missing"},
		"no runs":          {`{"task":"a","at":"2026-01-05T09:00:00Z"}`, "line 1: `runs` is missing"},
		"a run of nothing": {strings.Replace(good, `"10m"`, `"0s"`, 1), "line 1: run 2: `takes`"},
		"before it was":    {strings.Replace(good, `"2h"`, `"-2h"`, 1), "line 1: run 2: `after`"},
		"years":            {strings.Replace(good, `"24h"`, `"99999h"`, 1), "line 1: `end`"},
		"no span":          {strings.Replace(good, `"2h"`, `"soon"`, 1), "line 1: time: invalid duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadTrace(strings.NewReader(tt.text))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestGeneratedTraces: generated traces are valid, the same for the same seed, different for another, and unchanged by
// a file.
func TestGeneratedTraces(t *testing.T) {
	t.Parallel()
	for _, g := range Generators() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			var last []Task
			for seed := range uint64(20) {
				trace, err := Generate(g.Name, seed)
				if err != nil {
					t.Fatal(err)
				}
				if cmp.Equal(trace, last) {
					t.Error("two seeds, one trace")
				}
				last = trace
				var file bytes.Buffer
				if err := WriteTrace(&file, trace); err != nil {
					t.Fatal(err)
				}
				back, err := ReadTrace(&file)
				if err != nil {
					t.Fatal(err)
				}
				again, err := Generate(g.Name, seed)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(trace, back) + cmp.Diff(trace, again); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
	if _, err := Generate("dream-team", 1); err == nil || !strings.Contains(err.Error(), "small-team") {
		t.Errorf("an unknown generator: %v", err)
	}
}

// TestPeople checks that a tenth of people's responses take under 10 minutes, and a tenth over 3 days.
func TestPeople(t *testing.T) {
	t.Parallel()
	var quick, slow, all int
	for seed := range uint64(50) {
		trace, err := Generate("small-team", seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range trace {
			for _, r := range task.Runs[1:] {
				all++
				if r.After < Span(10*60*1e9) {
					quick++
				}
				if r.After > Span(72*3600*1e9) {
					slow++
				}
			}
		}
	}
	for what, n := range map[string]int{"under 10 min": quick, "over 3 days": slow} {
		if share := float64(n) / float64(all); share < 0.08 || share > 0.12 {
			t.Errorf("%s: %.3f of %d, want a tenth", what, share, all)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(`{"task":"a","at":"2026-01-05T09:00:00Z","runs":[{"after":"0s","takes":"30m"}],"end":"24h"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := ReadTrace(bytes.NewReader(data))
		if err != nil {
			return
		}
		for i := range trace {
			if err := trace[i].check(); err != nil {
				t.Errorf("passed, but %v", err)
			}
		}
	})
}
