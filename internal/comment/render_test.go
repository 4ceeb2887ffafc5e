package comment

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// said is one post of the golden files.
type said struct {
	task *state.Task
	post state.Post
}

// answeredRound is a comment that answers a round, one part of it with an address.
func answeredRound() state.Post {
	return state.Post{
		Kind: state.PostRound, OnPR: true, Text: "Both threads are answered.",
		Items: []string{"`01234567` rename it", "documented"}, Links: []string{"", "https://github.example/octo/calc/pull/9#pullrequestreview-5"},
	}
}

// statement is the comment with a signed statement.
func statement() state.Post {
	return state.Post{
		Kind: state.PostProvenance, OnPR: true, Text: `{"payloadType":"application/vnd.in-toto+json","payload":"eyJ9","signatures":[]}`,
		Items: []string{"Issue #7, as frozen on 2026-03-04 09:00:00 UTC (SHA-256 01234567)", "Approval: 👍 by octocat (write access) on 2026-03-04 09:30:00 UTC"},
	}
}

// everything returns a post of every kind and reason.
func everything() map[string]said {
	all := map[string]said{
		"plan/preliminary": {planned(), state.Post{Kind: state.PostPlan, Hash: planned().Plans[0].Hash}},
		"plan/thorough":    {planned(), state.Post{Kind: state.PostPlan, Hash: planned().Plans[2].Hash}},
		"plan/attachments": {with(func(t *state.Task) {
			t.Attachments = []state.Attachment{{ID: "read", SHA256: "00"}, {ID: "0a1b2c3d-4e5f-6789-abcd-ef0123456789", Unread: "it is larger than 5 MB"}, {ID: "12-core.zip", Unread: "it can only be read with a session"}}
		}), state.Post{Kind: state.PostPlan, Hash: planned().Plans[2].Hash}},
		"plan/signoff":          {with(func(t *state.Task) { t.Settings.SignOff = true }), state.Post{Kind: state.PostPlan, Hash: planned().Plans[2].Hash}},
		"plan/long":             {with(longPlan), state.Post{Kind: state.PostPlan, Hash: "abcdef01"}},
		"plan/lost":             {planned(), state.Post{Kind: state.PostPlan, Hash: "deadbeef"}},
		"changes/first":         {with(toPublish), state.Post{Kind: state.PostPlan, Hash: "0badcafe"}},
		"changes/round":         {with(longChanges), state.Post{Kind: state.PostPlan, Hash: "0badcafe"}},
		"changes/reminder":      {with(toPublish), state.Post{Kind: state.PostReminder, Hash: "0badcafe"}},
		"changes/edited":        {with(toPublish), state.Post{Kind: state.PostNotCounted, Reason: state.RejectedPlanEdited, By: writer, Hash: "0badcafe"}},
		"plan/reminder":         {planned(), state.Post{Kind: state.PostReminder, Hash: planned().Plans[2].Hash}},
		"question/agent":        {planned(), state.Post{Kind: state.PostQuestion, Reason: state.AskAgent, By: writer, Text: "Which error?\n\n- `ErrZero`\n- @bob's </details>"}},
		"question/existing":     {with(func(t *state.Task) { t.Context.Existing = someWork() }), state.Post{Kind: state.PostQuestion, Reason: state.AskExisting, By: writer}},
		"question/key":          {planned(), state.Post{Kind: state.PostQuestion, Reason: state.AskKey, By: writer, Text: "The pattern is `[A-Z]+-[0-9]+`"}},
		"question/stopped":      {with(implementing), state.Post{Kind: state.PostQuestion, Reason: state.AskStopped, By: writer}},
		"refused":               {with(implementing), state.Post{Kind: state.PostRefused, By: writer, Refusals: someRefusals()}},
		"answered":              {planned(), state.Post{Kind: state.PostAnswered, Text: "It takes about **two** days.\n```\ntail @octocat"}},
		"answered_noted":        {planned(), state.Post{Kind: state.PostAnswered}},
		"report":                {with(reported), state.Post{Kind: state.PostReport, Reason: string(state.OutcomeReport), By: writer, Text: "# Answer\n\nIt is **42**.\n```\nopen"}},
		"already_fixed":         {with(reported), state.Post{Kind: state.PostReport, Reason: string(state.OutcomeAlreadyFixed), Text: "Fixed in `abc`."}},
		"not_reproducible":      {with(reported), state.Post{Kind: state.PostReport, Reason: string(state.OutcomeNotReproducible), Text: "`go test` passes."}},
		"pr_opened":             {with(prOpen), state.Post{Kind: state.PostPROpened, By: reviewer}},
		"pr_opened_draft":       {with(func(t *state.Task) { prOpen(t); t.Settings.Draft, t.PR.Draft = settings.DraftUntilGreen, true }), state.Post{Kind: state.PostPROpened, By: reviewer}},
		"replaced":              {with(func(t *state.Task) { t.PR = nil }), state.Post{Kind: state.PostReplaced, OnPR: true}},
		"replaced_operator":     {with(func(t *state.Task) { t.PR, t.Trigger.Operator = nil, true }), state.Post{Kind: state.PostReplaced, OnPR: true}},
		"stopped_operator":      {with(implementing), state.Post{Kind: state.PostQuestion, Reason: state.AskStopped, By: state.Person{Operator: true}}},
		"replaced_by":           {with(prOpen), state.Post{Kind: state.PostReplaced, OnPR: true}},
		"ended_parked":          {with(func(t *state.Task) { prClosed(t); cancelled(t); t.PR.State, t.PR.KeptUntil = "closed", at(59) }), state.Post{Kind: state.PostEnded, By: writer}},
		"pr_closed":             {with(prClosed), state.Post{Kind: state.PostPRClosed, OnPR: true}},
		"pr_closed_late":        {with(prOpen), state.Post{Kind: state.PostPRClosed, OnPR: true}},
		"round":                 {with(func(t *state.Task) { prOpen(t); t.Round = 2 }), answeredRound()},
		"thread":                {with(prOpen), state.Post{Kind: state.PostThread, Thread: 5, Text: "Renamed, as asked by @octocat.", Items: []string{"0123456789abcdef0123456789abcdef01234567"}}},
		"thread_unchanged":      {with(prOpen), state.Post{Kind: state.PostThread, Thread: 5}},
		"provenance":            {with(prOpen), statement()},
		"no_changes":            {with(implementing), state.Post{Kind: state.PostNoChanges, By: writer, Text: "It works already."}},
		"checks":                {with(repaired(3)), state.Post{Kind: state.PostChecks, OnPR: true, By: writer, Checks: failingChecks()}},
		"checks_one":            {with(repaired(1)), state.Post{Kind: state.PostChecks, OnPR: true, By: writer, Checks: failingChecks()[:1]}},
		"round_expired":         {with(repaired(1)), state.Post{Kind: state.PostRoundExpired, OnPR: true, By: writer, Reason: state.RoundChecks}},
		"round_expired_pushed":  {with(repairing), state.Post{Kind: state.PostRoundExpired, OnPR: true, By: writer, Reason: state.RoundChecks}},
		"round_expired_base":    {with(stoppedUpdates), state.Post{Kind: state.PostRoundExpired, OnPR: true, By: writer, Hash: "0badcafe", Reason: state.RoundConflict}},
		"checks_pending":        {with(repaired(0)), state.Post{Kind: state.PostChecks, OnPR: true, By: writer, Checks: pendingChecks()}},
		"checks_mixed":          {with(repaired(1)), state.Post{Kind: state.PostChecks, OnPR: true, By: writer, Checks: append(failingChecks()[:1:1], pendingChecks()[:1]...)}},
		"checks_unread":         {with(prOpen), state.Post{Kind: state.PostChecks, OnPR: true, By: writer, Text: "GitHub refuses to show its checks."}},
		"failed":                {with(failed), state.Post{Kind: state.PostFailed, By: writer, Text: "the agent ran out of turns (30)", Hint: "give it more with `retry turns=60`"}},
		"failed_budget":         {with(overCap), state.Post{Kind: state.PostFailed, By: writer, Text: "The task's cap of 500,000 tokens is reached: 512,345 are used.", Hint: state.HintTokens}},
		"reply/no_budget":       {with(subscribed), state.Post{Kind: state.PostReply, Reason: state.ReplyNoBudget, By: writer}},
		"reply/no_token_cap":    {noted(), state.Post{Kind: state.PostReply, Reason: state.ReplyNoTokenCap, By: writer}},
		"reply/issue_created":   {noted(), state.Post{Kind: state.PostReply, Reason: state.ReplyIssueCreated, By: writer, Items: []string{"1"}}},
		"reply/no_proposal":     {noted(), state.Post{Kind: state.PostReply, Reason: state.ReplyNoProposal, By: writer}},
		"reply/issue_failed":    {noted(), state.Post{Kind: state.PostReply, Reason: state.ReplyIssueFailed, By: writer, Items: []string{"2"}, Text: "GitHub did not answer."}},
		"reply/update_later":    {with(func(t *state.Task) { prOpen(t); t.Phase = state.PhaseAddressingReview }), updateLater()},
		"reply/update_now":      {with(prOpen), updateLater()},
		"reply/update_failed":   {with(func(t *state.Task) { prOpen(t); t.Phase = state.PhaseFailed }), updateLater()},
		"reply/update_approval": {with(func(t *state.Task) { prOpen(t); t.Phase = state.PhaseAwaitingPublishApproval }), updateLater()},
		"reply/update_over":     {with(func(t *state.Task) { prOpen(t); cancelled(t) }), updateLater()},
		"reply/no_open_pr":      {noted(), state.Post{Kind: state.PostReply, Reason: state.ReplyNoOpenPR, By: writer}},
		"reply/ended":           {with(merged), state.Post{Kind: state.PostReply, Reason: state.ReplyEnded, By: writer}},
		"reply/subscription":    {with(subscribed), state.Post{Kind: state.PostReply, Reason: state.ReplyStatus, By: writer}},
		"reply/raised_tokens":   {with(subscribed), state.Post{Kind: state.PostReply, Reason: state.ReplyBudgetRaised, By: writer}},
		"reply/budget_hours":    {with(func(t *state.Task) { implementing(t); t.MoreVMHours = 12 }), state.Post{Kind: state.PostReply, Reason: state.ReplyBudgetRaised, By: writer}},
		"reply/budget_operator": {with(func(t *state.Task) { implementing(t); t.MoreVMHours = 12 }), state.Post{Kind: state.PostReply, Reason: state.ReplyBudgetRaised, By: state.Person{Operator: true}}},
		"reply/budget_tokens":   {with(overCap), state.Post{Kind: state.PostReply, Reason: state.ReplyBudgetRaised, By: writer}},
		"ended_merged":          {with(merged), state.Post{Kind: state.PostEnded, OnPR: true}},
		"ended_vms":             {with(func(t *state.Task) { parked(t); merged(t); t.VMs = manyVMs() }), state.Post{Kind: state.PostEnded, OnPR: true}},
		"ended_cancelled":       {with(cancelled), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_saved":           {with(func(t *state.Task) { failed(t); cancelled(t); t.PR.State = "closed" }), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_stopping":        {with(stopping), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_kept":            {with(keptWork), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_round":           {with(func(t *state.Task) { keptWork(t); cancelled(t); t.PR.InRound = true; t.End.KeptUntil = at(59) }), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_lost":            {with(lostWork), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_expired":         {with(expired), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_planning":        {with(canceledIn(state.PhasePlanning)), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_waiting":         {with(canceledIn(state.PhaseAwaitingPlanApproval)), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_stale": {with(func(t *state.Task) {
			t.NewestPlan().Stale = state.StaleIssueChanged
			canceledIn(state.PhaseAwaitingPlanApproval)(t)
		}), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_stale_changes": {with(func(t *state.Task) {
			toPublish(t)
			t.NewestPlan().Stale = state.StaleEdited
			canceledIn(state.PhaseAwaitingPublishApproval)(t)
		}), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_to_publish":    {with(func(t *state.Task) { toPublish(t); canceledIn(state.PhaseAwaitingPublishApproval)(t) }), state.Post{Kind: state.PostEnded, By: writer}},
		"ended_queued":        {with(canceledIn(state.PhaseQueued)), state.Post{Kind: state.PostEnded, By: writer}},
		"reply/ended_kept":    {with(keptWork), state.Post{Kind: state.PostReply, Reason: state.ReplyEnded, By: writer}},
		"reply/retry_late":    {with(keptWork), state.Post{Kind: state.PostReply, Reason: state.ReplyNothingToRetry, By: writer}},
		"reply/retry_expired": {with(expired), state.Post{Kind: state.PostReply, Reason: state.ReplyNothingToRetry, By: writer}},
		"failed_nobody":       {with(failed), state.Post{Kind: state.PostFailed, Text: "the agent's program crashed", Hint: "Comment `retry` to continue from here, or `retry fresh` for a new VM."}},
		"failed_lost":         {with(func(t *state.Task) { failed(t); t.VM = nil }), state.Post{Kind: state.PostFailed, By: writer, Text: "the VM disappeared"}},
		"failed_vm":           {with(failed), state.Post{Kind: state.PostFailed, By: writer, Text: "the task's VM hours are used up", Hint: state.HintVMHours}},
		"reply/no_retry":      {with(cancelled), state.Post{Kind: state.PostReply, Reason: state.ReplyNothingToRetry, By: writer}},
		"reply/ticket_early":  {with(func(t *state.Task) { t.Branch = state.Branch{} }), state.Post{Kind: state.PostReply, Reason: state.ReplyTicketNoted, Text: "ABC-1", By: writer}},
		"reply/ticket_late":   {with(prOpen), state.Post{Kind: state.PostReply, Reason: state.ReplyTicketNoted, Text: "ABC-1", By: writer}},
		"ended_no_access":     {with(outOfReach), state.Post{Kind: state.PostEnded}},
		"public/plan":         {with(public(func(*state.Task) {})), state.Post{Kind: state.PostPlan, Hash: planned().Plans[2].Hash}},
		"public/failed":       {with(public(overCap)), state.Post{Kind: state.PostFailed, By: writer}},
		"public/pr_opened":    {with(public(prOpen)), state.Post{Kind: state.PostPROpened, By: reviewer}},
		"public/raised":       {with(public(overCap)), state.Post{Kind: state.PostReply, Reason: state.ReplyBudgetRaised, By: writer}},
		"public/no_budget":    {with(public(subscribed)), state.Post{Kind: state.PostReply, Reason: state.ReplyNoBudget, By: writer}},
		"public/status":       {with(public(overCap)), state.Post{Kind: state.PostReply, Reason: state.ReplyStatus, By: writer}},
		"public/ended_vms":    {with(public(func(t *state.Task) { parked(t); merged(t); t.VMs = manyVMs() })), state.Post{Kind: state.PostEnded}},
		"public/waiting":      {with(public(implementing)), state.Post{Kind: state.PostWaiting, Text: "The cap of $1.00 for the task leaves too little for another answer: $0.985 is spent, and the smallest useful answer may take $0.04.", Hint: state.HintBudget}},
		"waiting/other":       {planned(), state.Post{Kind: state.PostWaiting, Reason: "vm", Text: "No VM of a configured type is available.", Items: []string{"cpx42 in fsn1: sold out"}}},
	}
	for _, reason := range append(reasons("Rejected"), "another") {
		if reason == state.RejectedNoPermission || reason == state.RejectedBot { // not answered
			continue
		}
		all["not_counted/"+reason] = said{planned(), state.Post{Kind: state.PostNotCounted, Reason: reason, By: writer, Hash: planned().Plans[2].Hash}}
	}
	for _, reason := range append(reasons("Reply"), state.WaitingDisabled) {
		p := state.Post{Kind: state.PostReply, Reason: reason, By: writer}
		switch reason {
		case state.ReplyUnknown:
			p.Text, p.Items = "approve", []string{"aprove`"}
		case state.ReplyTooMany:
			p.Text, p.Items = "3", []string{"budget +5", "model `opus` <b>"}
		case state.ReplyModelUnknown:
			p.Text, p.Items = "gpt-dear", []string{"claude-opus-*", "claude-sonnet-5"}
		case state.ReplyModelSet, state.ReplyTicketNoted:
			p.Text = "ABC-1"
		}
		if _, ok := all["reply/"+reason]; !ok {
			all["reply/"+reason] = said{with(implementing), p}
		}
	}
	for _, reason := range []string{state.VMNotRestored, state.VMNotSaved, state.VMExpired} {
		all["vm/"+reason] = said{with(failed), state.Post{Kind: state.PostVM, Reason: reason, Text: "the archive of the work is damaged", By: writer}}
	}
	for _, reason := range reasons("Base") {
		all["base/"+reason] = said{with(func(t *state.Task) { prOpen(t); t.Round = 2 }), state.Post{Kind: state.PostBase, OnPR: true, Reason: reason, By: writer,
			Text: "GitHub refused it: `x` </details> @octocat.", Items: []string{"release/`2`", baseItem(reason)}}}
	}
	for _, reason := range reasons("Merge") {
		item := strings.Repeat("d", 40)
		if reason == state.MergeAutoDisabled { // otherwise a commit
			item = "octocat"
		}
		all["merge/"+reason] = said{with(prOpen), state.Post{Kind: state.PostMerge, OnPR: true, Reason: reason, By: writer, Items: []string{item},
			Text: "GitHub refused it: `x` </details> @octocat: 2 approvals are required."}}
	}
	for _, reason := range reasons("Waiting") {
		p := state.Post{Kind: state.PostWaiting, Reason: reason, By: outsider}
		switch reason {
		case state.WaitingBlocked:
			p.Items = []string{"octo/calc#3", "octo/other#4"}
		case state.WaitingPermission:
			p.Text, p.Hint = "the App lacks permissions here: `contents: write` (granted: `read`)", "An owner of octo grants them in the settings of the App's installation"
			p.URL = installationURL
		case state.WaitingKey:
			p.Text, p.Hint = "the model's provider `anthropic` refuses errand's key", "The operator has to set a key that is valid at `models.anthropic` and restart errand, or make this one valid again; the task then continues automatically."
		case state.WaitingConfig:
			p.Text = ".errand.yml:3: check: want a list of commands, write\n  check:\n  - run: make test"
		}
		all["waiting/"+reason] = said{with(edited), p}
	}
	return all
}

// reasons returns the values of the string constants in state/reasons.go whose names begin with a prefix.
func reasons(prefix string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), "../../state/reasons.go", nil, 0)
	if err != nil {
		panic(err)
	}
	known, list := map[string]string{}, []string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name := spec.Names[0].Name
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			known[name] = strings.Trim(value.Value, `"`)
		case *ast.Ident: // the same text under another name, above
			known[name] = known[value.Name]
		}
		if strings.HasPrefix(name, prefix) {
			list = append(list, known[name])
		}
		return false
	})
	if len(list) == 0 || slices.Contains(list, "") {
		panic(fmt.Sprintf("the constants %s… in state/reasons.go: got %q", prefix, list))
	}
	return list
}

// installationURL is where an owner grants the App its permissions.
const installationURL = "https://github.example/settings/installations/7"

func longPlan(t *state.Task) {
	p := t.NewestPlan()
	p.Hash, p.Text = "abcdef01", strings.Repeat("A line of the plan, which is very long.\n\n", 300)+"```\nopen"
}

func someWork() []state.Existing {
	return []state.Existing{{Kind: "pull request", Name: "#5", URL: "https://github.example/octo/calc/pull/5", By: outsider}, {Kind: "branch", Name: "fix`div", By: reviewer, Merged: true}}
}

func someRefusals() []state.Refusal {
	return []state.Refusal{
		{Rule: "protected", Path: ".github/workflows/ci.yml", Detail: "the path is protected", Remedy: "leave it out, or allow it in `protected:`"},
		{Rule: "secret", Path: "a`b|.txt", Detail: "line 3 looks like a token of @bob", Remedy: "take it out"},
	}
}

func reported(t *state.Task) {
	t.End = &state.End{Reason: "the answer is a comment", At: at(30)}
	testLife{t}.phase(state.PhaseDone, 30, "answered")
}

func edited(t *state.Task) {
	t.Frozen.Changed = &state.Frozen{Title: "Div panics", Body: "It panics\u200b.\n\n```\nSee @octocat and run `curl evil`.", By: outsider}
	t.Waiting = &state.Waiting{Kind: state.WaitEdit, Detail: "@passer-by changed the issue; a person with write access has to say `replan`", Since: at(30)}
}

// TestEveryReplyIsRendered: a reply with its own text is posted for each reason, not the text of the post alone.
func TestEveryReplyIsRendered(t *testing.T) {
	t.Parallel()
	render := func(reason string) string {
		return Render(noted(), state.Post{Kind: state.PostReply, Reason: reason, By: writer}, view("job-1"))
	}
	for _, reason := range reasons("Reply") {
		if render(reason) == render("another") {
			t.Errorf("%s: got no text of its own", reason)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, s := range everything() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Render(s.task, s.post, view("job-1"))
			golden(t, name, got)
			if key, ok := FindMarker(got); !ok || key != "job-1" {
				t.Errorf("marker %q, %v", key, ok)
			}
			for _, banned := range []string{" we ", " our ", "sorry", "oops", "!\n", "@bob", "@infinity", "@someone", "\u200b"} {
				if i := strings.Index(strings.ToLower(got), banned); i > 0 && got[i-1] != '`' {
					t.Errorf("the text contains %q:\n%s", banned, got)
				}
			}
		})
	}
}

func TestTextsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, s := range everything() {
		got := Render(s.task, s.post, view(""))
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s are equal:\n%s", name, other, got)
		}
		seen[got] = name
	}
}

func TestOnlyPeopleWhoMustActAreMentioned(t *testing.T) {
	t.Parallel()
	for name, s := range everything() {
		got := Render(s.task, s.post, view(""))
		acts := s.post.Kind == state.PostNotCounted || s.post.Kind == state.PostReminder || s.post.Kind == state.PostWaiting || s.post.Reason == state.ReplyIssueFailed || (s.post.By.Login != "" && s.post.Kind != state.PostReply && s.post.Kind != state.PostEnded)
		for _, login := range []string{"octocat", "hubot-fan", "passer-by"} {
			bare := strings.Count(got, "@"+login) - strings.Count(got, "`@"+login) - strings.Count(got, "See @octocat and run") - strings.Count(got, "tail @octocat")
			if bare > 1 || bare == 1 && !acts {
				t.Errorf("%s mentions %s %d times:\n%s", name, login, bare, got)
			}
		}
	}
}

func TestRenderIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"plain": "word and word ", "ticks": "`", "HTML": "<b", "lines": "x\n", "fences": "```\n", "wide": "é@é "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long := strings.Repeat(unit, 70_000/len(unit))
			task := with(func(t *state.Task) {
				t.Plans[2].Text, t.Plans[2].Changes, t.Plans[2].Estimate = long, long, long
				t.Plans[2].Files = strings.Split(strings.Repeat("a/b.go ", 500), " ")
			})
			for _, kind := range []state.PostKind{state.PostPlan, state.PostQuestion, state.PostFailed} {
				got := Render(task, state.Post{Kind: kind, Hash: task.Plans[2].Hash, Text: long, Hint: long}, view("k"))
				if n := utf8.RuneCountInString(got); n > MaxLength {
					t.Errorf("%s has %d characters", kind, n)
				}
				if _, ok := FindMarker(got); !ok {
					t.Errorf("%s has no marker", kind)
				}
			}
		})
	}
}

// updateLater is the reply to a command to update the branch while the task does something else.
func updateLater() state.Post {
	return state.Post{Kind: state.PostReply, Reason: state.ReplyUpdateLater, By: writer, OnPR: true}
}

// baseItem returns the second item of a comment about the base.
func baseItem(reason string) string {
	if strings.Contains(reason, "workflows") {
		return ".github/workflows/ci.yml"
	}
	return "0123456789abcdef0123456789abcdef01234567"
}
