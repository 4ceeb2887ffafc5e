package provenance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/state"
)

// retirementGrace is how long after its retirement a key may have signed: a statement may be on its way to GitHub.
const retirementGrace = 10 * time.Minute

// Verify checks the chain of a pull request. keys are the keys to trust; without any, it uses the key that the statement names, and the result
// is at most ChainUnpinned: any App can sign a statement about its own pull request. An error means that GitHub could not be read.
func Verify(ctx context.Context, gh GitHub, number int, keys []Key) (Report, error) {
	pull, err := gh.Pull(ctx, number)
	if err != nil {
		return Report{}, err
	}
	v, keys := &verification{gh: gh, pull: pull}, mergeKeys(keys)
	r := Report{PullRequest: fmt.Sprintf("%s#%d", pull.Repository, number), Result: ChainHolds, Pinned: len(keys) > 0, Merged: pull.Merged, Links: []Link{}}
	err = v.run(ctx, keys, &r)
	if r.Result == ChainHolds && !r.Pinned {
		r.Result = ChainUnpinned
	}
	return r, err
}

// actionsBot is the account of the token that every workflow of a repository gets.
const actionsBot = "github-actions[bot]"

type verification struct {
	gh   GitHub
	pull Pull
	p    Predicate
}

// found is a comment with an envelope.
type found struct {
	text     Text
	envelope *dsse.Envelope
}

func (v *verification) run(ctx context.Context, keys []Key, r *Report) error {
	if !v.pull.By.Bot {
		r.add(LinkStatement, Unknown, fmt.Sprintf("%s opened this pull request, and not an App, so errand states nothing about it", v.pull.By.handle()))
		return nil
	}
	r.App = &v.pull.By
	if len(keys) == 0 && v.pull.By.Login == actionsBot {
		r.add(LinkStatement, Unknown, "everybody who can push can write as @"+actionsBot+", so its comments prove nothing. Pass the deployment's public keys with --key")
		return nil
	}
	comments, complete, err := v.gh.Comments(ctx, v.pull.Number, v.pull.By.ID)
	if err != nil {
		return err
	}
	at, ok := choose(ctx, comments, v.pull, keys)
	switch {
	case !ok && !complete:
		r.add(LinkStatement, Unknown, "there are more comments on this pull request than are read, and none of the first ones is a statement by "+v.pull.By.handle())
		return nil
	case !ok:
		r.add(LinkStatement, Gone, fmt.Sprintf("no comment by %s on this pull request contains a statement", v.pull.By.handle()))
		return nil
	}
	if e := at.text.Editor; e != nil && e.ID != v.pull.By.ID {
		r.add(LinkStatement, Altered, fmt.Sprintf("the comment with the statement was edited by %s on %s", e.handle(), day(at.text.EditedAt)))
	} else {
		r.add(LinkStatement, Holds, fmt.Sprintf("a comment by %s, last written on %s", v.pull.By.handle(), day(at.text.changedAt())))
	}
	if !v.signature(ctx, at, keys, r) {
		return nil
	}
	r.Statement = &v.p
	v.pullRequest(r)
	for _, check := range []func(context.Context, *Report) error{v.issue, v.plan, v.approvedChanges, v.commits, v.merge} {
		if err := check(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the newest statement, and prefers those with a valid signature. A stranger cannot add one: only comments by the account
// that opened the pull request count.
func choose(ctx context.Context, comments []Text, pull Pull, keys []Key) (best found, ok bool) {
	trusted := false
	for _, c := range comments {
		if c.By.ID != pull.By.ID || !c.By.Bot {
			continue
		}
		e, has := Find(c.Body)
		if !has {
			continue
		}
		valid := signedBy(ctx, e, keys) != nil
		if !ok || valid && !trusted || valid == trusted && !c.changedAt().Before(best.text.changedAt()) {
			best, ok, trusted = found{c, e}, true, valid
		}
	}
	return best, ok
}

// signedBy returns the key that signed an envelope, nil if none of them did.
func signedBy(ctx context.Context, e *dsse.Envelope, keys []Key) *Key {
	if len(e.Signatures) != 1 {
		return nil
	}
	for i, k := range keys {
		if e.Signatures[0].KeyID != "" && e.Signatures[0].KeyID != k.ID {
			continue
		}
		verifier, err := keyOf(k.ID, k.Public, nil)
		if err != nil {
			continue
		}
		all, err := dsse.NewEnvelopeVerifier(verifier)
		if err != nil {
			continue
		}
		if _, err := all.Verify(ctx, e); err == nil {
			return &keys[i]
		}
	}
	return nil
}

// signature checks the signature and reads the predicate. It reports whether the predicate can be used.
func (v *verification) signature(ctx context.Context, at found, keys []Key, r *Report) bool {
	if n := len(at.envelope.Signatures); n != 1 {
		r.add(LinkSignature, Altered, fmt.Sprintf("the envelope has %d signatures instead of one", n))
		return false
	}
	p, err := read(at.envelope)
	if err != nil {
		r.add(LinkSignature, Altered, "the envelope is not a statement of errand: "+err.Error())
		return false
	}
	claimed := at.envelope.Signatures[0].KeyID
	trusted := keys
	if len(keys) == 0 {
		k, err := namedKey(p.Deployment)
		if err != nil {
			r.add(LinkSignature, Altered, err.Error())
			return false
		}
		trusted = []Key{k}
	}
	k := signedBy(ctx, at.envelope, trusted)
	switch {
	case k == nil && !slices.ContainsFunc(trusted, func(t Key) bool { return t.ID == claimed }):
		r.add(LinkSignature, Altered, fmt.Sprintf("it was signed with the key %s, which is none of the %d trusted ones. If the deployment replaced its key, "+
			"get all of its keys from %s of its address", cut(claimed, 100), len(trusted), KeysPath))
		return false
	case k == nil:
		r.add(LinkSignature, Altered, "the statement is not what the key "+cut(claimed, 100)+" signed")
		return false
	case !k.Retired.IsZero() && at.text.changedAt().After(k.Retired.Add(retirementGrace)):
		r.add(LinkSignature, Altered, fmt.Sprintf("the key %s was retired on %s, and the statement was written on %s", k.ID, day(k.Retired), day(at.text.changedAt())))
		return false
	}
	detail := "signed with the key " + k.ID
	switch {
	case len(keys) == 0:
		detail += ", which the statement itself names. Pass the deployment's public keys with --key: without them, anybody who controls an App could have signed it"
	case !k.Retired.IsZero():
		detail += ", which was retired later, on " + day(k.Retired)
	}
	v.p, r.KeyID = p, k.ID
	r.add(LinkSignature, Holds, detail)
	return true
}

// pullRequest checks that the statement is about this pull request.
func (v *verification) pullRequest(r *Report) {
	q := v.p.PullRequest
	if q.RepositoryID != v.pull.RepositoryID || q.Number != v.pull.Number {
		r.add(LinkPullRequest, Altered, fmt.Sprintf("the statement was made for %s#%d", cut(q.Repository, 100), q.Number))
		return
	}
	if q.Base != v.pull.Base || q.Branch != v.pull.Branch {
		r.add(LinkPullRequest, Altered, fmt.Sprintf("the statement is about merging %s into %s, and the pull request merges %s into %s: its base was changed, or a branch was renamed",
			cut(q.Branch, 100), cut(q.Base, 100), cut(v.pull.Branch, 100), cut(v.pull.Base, 100)))
		return
	}
	detail := fmt.Sprintf("made for %s#%d", cut(q.Repository, 100), q.Number)
	if len(v.p.Shortened) > 0 {
		var lists []string
		for _, s := range v.p.Shortened {
			lists = append(lists, s.List)
		}
		detail += "; shortened, with digests: " + cut(strings.Join(lists, ", "), 300)
	}
	r.add(LinkPullRequest, Holds, detail)
}

func (v *verification) issue(ctx context.Context, r *Report) error {
	i := v.p.Issue
	text, err := v.gh.Issue(ctx, i.Number)
	if err != nil {
		return err
	}
	switch {
	case text == nil:
		r.add(LinkIssue, Gone, fmt.Sprintf("issue #%d does not exist any more, or is not visible", i.Number))
	case state.FreezeHash(text.Title, text.Body, i.Files...) != i.TextSHA256:
		r.add(LinkIssue, Altered, fmt.Sprintf("the text of issue #%d is not the one that was worked on%s", i.Number, edited(text)))
	case v.p.Plan != nil && v.p.Plan.IssueHash != "" && v.p.Plan.IssueHash != i.TextSHA256:
		r.add(LinkIssue, Holds, fmt.Sprintf("the text of issue #%d is as it was frozen on %s, after the plan was made", i.Number, day(i.FrozenAt)))
	default:
		r.add(LinkIssue, Holds, fmt.Sprintf("the text of issue #%d is as it was frozen on %s", i.Number, day(i.FrozenAt)))
	}
	return nil
}

func (v *verification) plan(ctx context.Context, r *Report) error {
	p, a := v.p.Plan, v.p.Approval
	switch {
	case p == nil && a == nil:
		r.add(LinkPlan, Unknown, "the statement names neither a plan nor an approval")
		return nil
	case p == nil && a.Via != string(state.ViaSettings):
		r.add(LinkPlan, Unknown, "the statement names an approval, but not its plan")
		return nil
	case p == nil:
		r.add(LinkPlan, Stated, "errand states that the repository's settings required no plan")
		v.otherPlans(r, "")
		return v.earlierPlans(ctx, r)
	}
	v.otherPlans(r, p.Hash)
	text, err := v.revision(ctx, r, LinkPlan, *p)
	if err != nil {
		return err
	}
	switch {
	case a == nil:
		r.add(LinkApproval, Unknown, "the statement names no approval of its plan")
		return nil
	case a.Hash != p.Hash:
		r.add(LinkApproval, Altered, "the approval is not of this plan")
		return nil
	}
	if err := v.approval(ctx, r, LinkApproval, text, *a, *p); err != nil {
		return err
	}
	return v.earlierPlans(ctx, r)
}

// earlierPlans checks the plans that the present one replaced, and their approvals.
func (v *verification) earlierPlans(ctx context.Context, r *Report) error {
	for _, e := range v.p.EarlierPlans {
		name := fmt.Sprintf("%s %d", e.name(), e.Number)
		text, err := v.revision(ctx, r, name, e.Revision)
		if err != nil {
			return err
		}
		if e.Approval.Hash != e.Hash {
			r.add(LinkApproval+" of "+name, Altered, "the approval is not of this plan")
			continue
		}
		if err := v.approval(ctx, r, LinkApproval+" of "+name, text, e.Approval, e.Revision); err != nil {
			return err
		}
	}
	return nil
}

// name returns the name of the link of an earlier plan, without its number.
func (e EarlierPlan) name() string {
	if e.Kind == string(state.PlanPreliminary) {
		return "preliminary plan"
	}
	return "earlier plan"
}

// otherPlans names the plans of publications that are neither the stated one nor an earlier one, so that no stated approval covers them.
func (v *verification) otherPlans(r *Report, stated string) {
	heads := map[string]string{}
	for _, q := range v.p.Publications {
		if q.Update == nil && q.Plan != stated && !slices.ContainsFunc(v.p.EarlierPlans, func(e EarlierPlan) bool { return e.Hash == q.Plan }) {
			heads[q.Plan] = q.Head
		}
	}
	for _, plan := range slices.Sorted(maps.Keys(heads)) {
		made := "from the plan " + short(plan) + ", whose approval the statement does not have"
		if plan == "" {
			made = "without a plan"
		}
		r.add(LinkPlan, Unknown, fmt.Sprintf("commits up to %s were made %s", short(heads[plan]), made))
	}
}

func (v *verification) approvedChanges(ctx context.Context, r *Report) error {
	for _, c := range v.p.Changes {
		name := fmt.Sprintf("%s %d", LinkChanges, c.Number)
		text, err := v.revision(ctx, r, name, c.Revision)
		if err != nil {
			return err
		}
		if c.Approval.Hash != c.Hash {
			r.add(LinkApproval+" of "+name, Altered, "the approval is not of these changes")
			continue
		}
		if err := v.approval(ctx, r, LinkApproval+" of "+name, text, c.Approval, c.Revision); err != nil {
			return err
		}
	}
	for _, q := range v.p.Publications {
		if q.Changes == "" {
			continue
		}
		i := slices.IndexFunc(v.p.Changes, func(c Changes) bool { return c.Hash == q.Changes })
		switch {
		case i < 0:
			r.add(LinkChanges, Unknown, "the statement does not have the approved changes that were published in "+short(q.Head))
		case v.p.Changes[i].Digest != q.Digest || v.p.Changes[i].Tree != q.Tree:
			r.add(LinkChanges, Altered, "the changes that were published in "+short(q.Head)+" are not the approved ones")
		}
	}
	return nil
}

// revision checks the comment with a revision, and returns it.
func (v *verification) revision(ctx context.Context, r *Report, name string, p Revision) (*Text, error) {
	about := fmt.Sprintf("revision %d (%s)", p.Number, short(p.Hash))
	if p.Comment == 0 || p.BodyHash == "" {
		r.add(name, Unknown, about+" has no comment")
		return nil, nil
	}
	text, err := v.gh.Comment(ctx, p.Comment)
	switch {
	case err != nil:
		return nil, err
	case text == nil:
		r.add(name, Gone, "the comment with "+about+" does not exist any more, or is not visible")
	case text.By.ID != v.pull.By.ID:
		r.add(name, Altered, fmt.Sprintf("the comment with %s is by %s", about, text.By.handle()))
	case comment.BodyHash(text.Body) != p.BodyHash:
		r.add(name, Altered, fmt.Sprintf("the comment with %s is not as errand wrote it%s", about, edited(text)))
	default:
		r.add(name, Holds, fmt.Sprintf("the comment with %s is as errand wrote it on %s", about, day(p.PostedAt)))
	}
	return text, nil
}

// edited returns who edited a text last, as a clause.
func edited(t *Text) string {
	if t.Editor == nil {
		return ""
	}
	return fmt.Sprintf(": %s edited it on %s", t.Editor.handle(), day(t.EditedAt))
}

func (p Person) handle() string {
	if p.Login == "" {
		return "a deleted account"
	}
	return "@" + cut(p.Login, 60)
}

func short(id string) string { return id[:min(len(id), 8)] }

func day(t time.Time) string {
	if t.IsZero() {
		return "an unknown date"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
