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
	preFact   = "fact/"       // NAME: a small value of errand's own, raw bytes

	preTask     = "task/"  // TASK: the Task
	preOpen     = "open/"  // TASK: the phase of a task that has not ended, as text
	preSpending = "purse/" // DAY or MONTH: the cost of all tasks in that period
	preEnded    = "ended/" // TASK: the phase of a task that has ended, as text
	prePR       = "pr/"    // REPO/NUMBER: the TASK of a pull request, as text

	preWake    = "due/"           // a write under this prefix wakes the workers
	preJobs    = preWake + "job/" // TASK: its queued and claimed jobs in the order of their creation, without payload
	preJobData = "jobdata/"       // JOB: the payload of a job that has one; it never changes
	preJobSeq  = "jobseq/"        // TASK: the number of its last job, decimal

	preInbox    = preWake + "inbox/" // TIME/GUID: a pending delivery: its payload, or nothing if that is large or was stored by schema 1
	preDelivery = "delivery/"        // GUID: the state of a delivery; remains as the tombstone
	prePayload  = "payload/"         // GUID: its payload, until it is spent, if it is not stored in the inbox
	prePoison   = "poison/"          // TIME/GUID: a delivery that failed too often; empty
	preTomb     = "tomb/"            // TIME/GUID: a spent delivery; empty

	preCall     = "call/"     // ID: the Reservation of a model call whose cost is not yet recorded
	preAudit    = "audit/"    // TIME, the newest first, /ID: the Action of an operator, uncompressed
	preUpstream = "upstream/" // NAME: the limit or error that keeps runs from using this model provider
	keyPauses   = "paused"    // the Pauses that are in effect
	keyRestored = "restored"  // a Restored, if this is a copy from a backup
	prePurging  = "purging/"  // TASK: a purged task of which files may be left, or texts in free pages of the database; filesDeleted, the branch, or empty

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

// guidOfTimeKey returns the GUID in a key made by timeKey.
func guidOfTimeKey(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// jobID returns the ID of the n-th job of a task: REPO-ISSUE-N. It is valid as a file name.
func jobID(k state.TaskKey, n int64) string { return fmt.Sprintf("%d-%d-%d", k.Repo, k.Issue, n) }

// taskOfJob returns the key of the task in a job's ID.
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

// validGUID reports whether a delivery's GUID is valid as a part of a key. GitHub sends UUIDs.
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
