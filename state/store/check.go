package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// Check reads the whole store at one moment and returns every inconsistency in it, one sentence each. It is for tests
// and for the operator, and needs memory for all of the store.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	var c *checker
	err := s.db.View(ctx, func(r kv.Reader) error {
		pairs, err := r.Range("", "", 0)
		if err != nil {
			return err
		}
		c = &checker{store: s, r: r, all: map[string][]byte{}, expected: map[string]bool{}}
		for _, p := range pairs {
			c.all[p.Key] = p.Value
		}
		c.check()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check store: %w", err)
	}
	slices.Sort(c.problems)
	return c.problems, nil
}

// checker starts at the authoritative data (tasks, queues, deliveries) and collects the keys that belong to it. Any
// other key is a problem.
type checker struct {
	store    *Store
	r        kv.Reader
	all      map[string][]byte
	expected map[string]bool
	problems []string
}

func (c *checker) report(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// expectKey marks a key as required by owner.
func (c *checker) expectKey(key, owner string) {
	c.expected[key] = true
	value, ok := c.all[key]
	if !ok {
		c.report("%s: %s is missing", owner, key)
		return
	}
	for i := range blob.PartCount(value) {
		c.expectKey(blob.PartKey(key, i), owner)
	}
}

func (c *checker) check() {
	for key := range c.all {
		switch {
		case strings.HasPrefix(key, preTask):
			c.task(key)
		case strings.HasPrefix(key, preJobs):
			c.queue(key)
		case strings.HasPrefix(key, preDelivery):
			c.delivery(key)
		case strings.HasPrefix(key, preCall):
			c.expectKey(key, key)
		case key == keySchema, key == keyPauses, key == keyRestored, strings.HasPrefix(key, preFact), strings.HasPrefix(key, preJobSeq),
			strings.HasPrefix(key, preSpending), strings.HasPrefix(key, preUpstream), strings.HasPrefix(key, preAudit), strings.HasPrefix(key, prePurging):
			c.expected[key] = true
		}
	}
	c.store.VMs.Check(c.r, slices.Collect(maps.Keys(c.all)), c.expectKey, c.report)
	for key := range c.all {
		if !c.expected[key] {
			c.report("%s belongs to nothing", key)
		}
	}
}

func (c *checker) task(key string) {
	c.expectKey(key, key)
	var t state.Task
	if err := c.store.codec.GetJSON(c.r, key, &t); err != nil {
		c.report("%v", err)
		return
	}
	if taskKey(t.Key) != key {
		c.report("%s holds task %s", key, t.Key)
	}
	c.expectKey(indexOf(t.Phase)+t.Key.String(), key)
	if got := c.all[indexOf(t.Phase)+t.Key.String()]; phaseOf(got) != t.Phase {
		c.report("%s is in phase %s but listed as %s", key, t.Phase, got)
	}
	for _, n := range prNumbers(&t) {
		index := prKey(t.Key.Repo, n)
		c.expected[index] = true // two tasks may refer to one pull request; the later one owns the index entry
		if c.all[index] == nil {
			c.report("%s: %s is missing", key, index)
		}
	}
}

func (c *checker) queue(key string) {
	c.expectKey(key, key)
	task, err := state.ParseTaskKey(key[len(preJobs):])
	if err != nil {
		c.report("%s: %v", key, err)
		return
	}
	q, err := c.store.getQueue(c.r, task)
	if err != nil {
		c.report("%v", err)
		return
	}
	ids, keys, lanes := map[string]bool{}, map[string]bool{}, map[state.Lane]bool{}
	for _, j := range q.jobs {
		if ids[j.ID] {
			c.report("%s has job %s twice", key, j.ID)
		}
		if owner, err := taskOfJob(j.ID); err != nil || owner != task || j.Task != task {
			c.report("%s has job %s of task %s", key, j.ID, j.Task)
		}
		if j.State == state.JobQueued && j.Key != "" && keys[j.Key] {
			c.report("%s has two queued jobs with key %s", key, j.Key)
		}
		if j.State == state.JobClaimed && lanes[j.Lane] {
			c.report("%s has two claimed jobs in lane %s", key, j.Lane)
		}
		ids[j.ID] = true
		keys[j.Key] = keys[j.Key] || j.State == state.JobQueued
		lanes[j.Lane] = lanes[j.Lane] || j.State == state.JobClaimed
		if _, ok := c.all[preJobData+j.ID]; ok {
			c.expectKey(preJobData+j.ID, key)
		}
	}
	if len(q.jobs) == 0 {
		c.report("%s is an empty queue", key)
	}
}

func (c *checker) delivery(key string) {
	c.expectKey(key, key)
	guid := key[len(preDelivery):]
	row, err := getDelivery(c.r, guid)
	if err != nil {
		c.report("%v", err)
		return
	}
	switch row.State {
	case deliveryPending:
		inbox := timeKey(preInbox, row.Received, guid)
		c.expectKey(inbox, key)
		if len(c.all[inbox]) == 0 {
			c.expectKey(prePayload+guid, key)
		}
	case deliveryPoison:
		c.expectKey(timeKey(prePoison, row.Received, guid), key)
		c.expectKey(prePayload+guid, key)
	case deliverySpent:
		c.expectKey(timeKey(preTomb, row.Tried, guid), key)
	default:
		c.report("%s is in state %q", key, row.State)
	}
}
