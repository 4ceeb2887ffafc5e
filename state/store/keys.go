package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// The keys of the database. Every key begins with one of these; TASK is state.TaskKey.String. Values are JSON,
// compressed and in parts where they are large (see package blob), unless it says otherwise.
const (
	keySchema = "meta/schema" // the schema's version, decimal
	preFact   = "fact/"       // NAME: a small fact of ours, raw bytes

	preTask  = "task/"  // TASK: the Task
	preOpen  = "open/"  // TASK: the phase of a task that has not ended, as text
	prePurse = "purse/" // DAY or MONTH: what all tasks together have cost then
	preEnded = "ended/" // TASK: the phase of a task that has, as text
	prePR    = "pr/"    // REPO/NUMBER: the TASK of a pull request, as text

	preWake    = "due/"           // a write under this prefix wakes the workers
	preJobs    = preWake + "job/" // TASK: its live jobs in the order of their creation, without payload
	preJobData = "jobdata/"       // JOB: the payload of a job that has one; never changes
	preJobSeq  = "jobseq/"        // TASK: the number of its last job, decimal

	preInbox    = preWake + "inbox/" // TIME/GUID: a delivery that waits: its payload, or nothing if that is large or was stored by schema 1
	preDelivery = "delivery/"        // GUID: what is known of a delivery; what stays is the tombstone
	prePayload  = "payload/"         // GUID: its payload, until it is spent, if it does not lie in the inbox
	prePoison   = "poison/"          // TIME/GUID: a delivery that failed too often; empty
	preTomb     = "tomb/"            // TIME/GUID: when a delivery was spent; empty

	preCall     = "call/"     // ID: the Reservation of a call of a model that is not booked yet
	preUpstream = "upstream/" // NAME: why no run is started that asks this model provider

)

func taskKey(k state.TaskKey) string   { return preTask + k.String() }
func jobsKey(k state.TaskKey) string   { return preJobs + k.String() }
func jobSeqKey(k state.TaskKey) string { return preJobSeq + k.String() }

func prKey(repo int64, number int) string { return fmt.Sprintf("%s%d/%d", prePR, repo, number) }

// timeKey returns a key under prefix that sorts by time.
func timeKey(prefix string, at time.Time, guid string) string {
	return fmt.Sprintf("%s%s/%s", prefix, timeDigits(at), guid)
}

func timeDigits(at time.Time) string { return fmt.Sprintf("%020d", max(at.UnixNano(), 0)) }

// guidOfTimeKey returns the GUID in what timeKey made.
func guidOfTimeKey(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// jobID names the n-th job of a task: REPO-ISSUE-N. It is fit for a file's name.
func jobID(k state.TaskKey, n int64) string { return fmt.Sprintf("%d-%d-%d", k.Repo, k.Issue, n) }

// taskOfJob returns the task that a job's id names.
func taskOfJob(id string) (state.TaskKey, error) {
	cut := strings.LastIndexByte(id, '-')
	if cut < 0 {
		return state.TaskKey{}, fmt.Errorf("parse job id %q: want REPOSITORY_ID-ISSUE_NUMBER-N", id)
	}
	if _, err := strconv.ParseInt(id[cut+1:], 10, 64); err != nil {
		return state.TaskKey{}, fmt.Errorf("parse job id %q: %w", id, err)
	}
	key, err := state.ParseTaskKey(strings.Replace(id[:cut], "-", "/", 1))
	if err != nil {
		return state.TaskKey{}, fmt.Errorf("parse job id %q: %w", id, err)
	}
	return key, nil
}

// validGUID reports whether a delivery's GUID can be part of a key. GitHub sends UUIDs.
func validGUID(guid string) bool {
	const most = 100
	if guid == "" || len(guid) > most {
		return false
	}
	return !strings.ContainsFunc(guid, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.' && r != ':'
	})
}
