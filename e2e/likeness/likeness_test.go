package likeness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// said names the directory with simgithub's recorded answers in earlier tests.
const said = "ERRAND_SAID"

// enterprise is the published description of the oldest Enterprise Server.
const enterprise = "ghes-3.17.json"

// judges holds all descriptions.
type judges struct {
	rest     *rest
	webhooks *webhooks
	graphql  *graphql
	counts   map[string]int
}

func newJudges(t *testing.T) *judges {
	t.Helper()
	j := &judges{counts: map[string]int{}}
	var err error
	j.rest, err = newREST(readJSON(t, need(t, "openapi/generated/api.github.com.json")), readJSON(t, need(t, "openapi/generated/"+enterprise)))
	if err != nil {
		t.Fatal(err)
	}
	j.webhooks, err = newWebhooks(readJSON(t, need(t, "openapi-webhooks/generated/api.github.com.json")), readJSON(t, need(t, "webhooks-schemas/schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(need(t, "graphql-schema/schema.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	if j.graphql, err = newGraphQL(string(schema)); err != nil {
		t.Fatal(err)
	}
	if err := j.webhooks.calibrate(examples(t)); err != nil {
		t.Fatal(err)
	}
	return j
}

// judge returns the differences of a recording from the published descriptions.
func (j *judges) judge(rec record.Record) ([]unlike, error) {
	j.counts[rec.Kind]++
	switch rec.Kind {
	case "rest":
		return j.rest.judge(rec)
	case "webhook":
		return j.webhooks.judge(rec)
	case "graphql":
		return j.graphql.judge(rec)
	default:
		return nil, fmt.Errorf("unknown kind of recording %q", rec.Kind)
	}
}

// TestLikeness checks all answers and webhooks of simgithub during the other tests.
func TestLikeness(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(said)
	if dir == "" {
		t.Skipf("simgithub's recordings are checked after all other tests: `make test-full` does so and sets %s", said)
	}
	j := newJudges(t)
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	allowed, files := newAllowances(exceptions()), map[unlike][]string{}
	for _, name := range names {
		found, err := j.judge(read(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, u := range found {
			if !allowed.allows(u) {
				files[u] = append(files[u], filepath.Base(name))
			}
		}
	}
	for _, line := range lines(files) {
		t.Error(line)
	}
	for i, n := range allowed.used {
		e := allowed.list[i]
		t.Logf("exception %q, %q: used %d times", e.where, e.what, n)
		if n == 0 {
			t.Errorf("the exception %q, %q is unused: remove it here and in docs/assumptions.md", e.where, e.what)
		}
	}
	t.Logf("PROOF: likeness: %d answers of %d routes, %d webhooks of %d events, %d queries of %d kinds; %d unlike",
		j.counts["rest"], len(j.rest.used), j.counts["webhook"], len(j.webhooks.used), j.counts["graphql"], len(j.graphql.used), len(files))
	if j.counts["rest"] == 0 || j.counts["webhook"] == 0 || j.counts["graphql"] == 0 {
		t.Error("too few recordings to prove anything")
	}
}

// lines lists the differences, each with one recording that has it.
func lines(files map[unlike][]string) []string {
	var out []string
	for u, in := range files {
		out = append(out, fmt.Sprintf("%s (%d times, as in %s)", u, len(in), in[0]))
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// read reads one recording.
func read(t *testing.T, name string) record.Record {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rec record.Record
	if err := json.Unmarshal(raw, &rec); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return rec
}
