package evidence_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/evidence"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/webtest"
	"github.com/errand-bot/errand/state"
)

const branch = "errand/1-it-breaks"

// A scene is a pull request of errand on the simulator: an approved plan, two published commits, and the signed statement.
type scene struct {
	*forgetest.World
	t       *testing.T
	task    *state.Task
	keyFile string
	plan    int64 // its comment
	token   string
}

// newScene makes a scene whose plan wendy approves in a way.
func newScene(t *testing.T, via state.ApprovalVia) *scene {
	t.Helper()
	s := &scene{World: forgetest.NewWorld(t), t: t, keyFile: filepath.Join(t.TempDir(), "provenance_key")}
	i := s.OpenIssue(t, "It breaks")
	base := s.head("main")
	s.task = &state.Task{Key: state.TaskKey{Repo: s.Repo.ID, Issue: i.Number}, Gen: 1}
	s.task.Repo = state.Repo{ID: s.Repo.ID, Owner: "octo", Name: "app", DefaultBranch: "main", URL: s.BaseURL() + "/octo/app"}
	s.task.Trigger = state.Trigger{By: s.person("wendy"), Via: state.TriggerAssigned, At: time.Now()}
	s.task.Frozen = state.Frozen{Title: i.Title, Body: i.Body, Hash: state.FreezeHash(i.Title, i.Body), By: s.person("wendy"), At: time.Now()}
	s.task.Branch = state.Branch{Name: branch, Base: "main", BaseSHA: base}
	s.postPlan(base)
	s.approve(via)
	s.task.Runs = []state.Run{{ID: "1-1-1", Seq: 1, Kind: state.RunImplement, Started: time.Now(), Ended: time.Now()}}
	s.task.Runs[0].Adapter, s.task.Runs[0].Model, s.task.Runs[0].Prompt = "claude", "claude-x", strings.Repeat("a", 64)
	s.publish(base)
	pr := forgetest.Must(s.Forge.OpenPR(t.Context(), s.Repo, forge.NewPR{Head: branch, Base: "main", Title: "Mend it", Body: "x"}))(t)
	state := pr.State()
	s.task.PR = &state
	s.post(s.statement())
	return s
}

func (s *scene) person(login string) state.Person {
	u, ok := s.User(login)
	if !ok {
		s.t.Fatalf("no account %s", login)
	}
	return state.Person{ID: u.ID, Login: login}
}

func (s *scene) head(name string) string {
	return forgetest.Must(s.As("octo").Repo(forgetest.FullName))(s.t).Git.Branch(name)
}

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// postPlan posts the plan as errand does.
func (s *scene) postPlan(base string) {
	p := state.Plan{Kind: state.PlanThorough, Revision: 1, Text: "1. Mend it.", Summary: "It is mended.", BaseSHA: base, IssueHash: s.task.Frozen.Hash}
	p.Hash = state.PlanHash(p)
	s.task.Plans = []state.Plan{p}
	body := comment.Render(s.task, state.Post{Kind: state.PostPlan, Hash: p.Hash}, comment.View{Slug: "errand", Key: "1.plan", Now: time.Now()})
	c := forgetest.Must(s.Forge.CreateComment(s.t.Context(), s.Repo, s.task.Key.Issue, body))(s.t)
	q := &s.task.Plans[0]
	q.Comment, q.CommentNode, q.BodyHash, q.PostedAt = c.ID, c.Node, comment.BodyHash(c.Body), c.CreatedAt
	s.plan = c.ID
	for _, token := range s.Tokens() {
		if strings.HasPrefix(token, "ghs_") { // the App's only one so far, with all permissions
			s.token = token
		}
	}
}

// approve approves the plan as wendy.
func (s *scene) approve(via state.ApprovalVia) {
	s.t.Helper()
	wendy, p := s.As("wendy"), &s.task.Plans[0]
	a := &state.Approval{Kind: p.Kind, Hash: p.Hash, By: s.person("wendy"), Permission: state.PermissionWrite, Via: via, Given: s.Now(), At: s.Now().Add(time.Second)}
	switch via {
	case state.ViaReaction:
		s.check(wendy.React(forgetest.FullName, s.plan, "+1"))
		a.Given = forgetest.Must(s.reader().Comment(s.t.Context(), s.plan))(s.t).ThumbsUp[0].At
	case state.ViaBox:
		body := forgetest.Must(s.reader().Comment(s.t.Context(), s.plan))(s.t).Body
		s.check(wendy.EditComment(forgetest.FullName, s.plan, strings.Replace(body, "- [ ]", "- [x]", 1)))
	case state.ViaCommand:
		c := forgetest.Must(wendy.Comment(forgetest.FullName, s.task.Key.Issue, "@errand approve"))(s.t)
		a.CommentID, a.CommentHash = c.ID, state.CommentHash(c.Body)
	}
	s.task.Approval = a
}

// publish publishes two commits.
func (s *scene) publish(base string) {
	s.t.Helper()
	cs := &changeset.Changeset{Base: base, Blobs: map[string][]byte{}}
	parent, octo := base, s.As("octo")
	for n, path := range []string{"old.txt", "new.txt"} {
		content := fmt.Sprintf("mended %d\n", n)
		sha := forgetest.Must(octo.PushCommit(forgetest.FullName, simgithub.Commit{Branch: "scratch", Message: "x", Files: map[string]string{path: content}}))(s.t)
		blob, id := changeset.BlobID([]byte(content)), strings.Repeat(fmt.Sprint(n+1), 40)
		cs.Blobs[blob] = []byte(content)
		change := changeset.Change{Path: path, Mode: changeset.ModeFile, Blob: blob}
		if path == "old.txt" {
			change.OldMode = changeset.ModeFile
		}
		cs.Commits = append(cs.Commits, changeset.Commit{
			ID: id, Parents: []string{parent}, Tree: forgetest.Must(octo.Repo(forgetest.FullName))(s.t).Git.Commit(sha).Tree, Message: "Mend " + path, Changes: []changeset.Change{change},
		})
		parent = id
	}
	s.check(octo.DeleteBranch(forgetest.FullName, "scratch"))
	out := forgetest.Must(s.Forge.CreateCommits(s.t.Context(), s.Repo, cs, base, nil))(s.t)
	s.check(s.Forge.MoveBranch(s.t.Context(), s.Repo, branch, "", out.Head))
	w := &state.Work{Run: "1-1-1", Base: base, Head: out.Head, Tree: out.Tree, IDs: out.IDs, Digest: forgetest.Must(cs.Digest())(s.t), Summary: "Mended."}
	for _, c := range cs.Commits {
		w.Published = append(w.Published, state.PublishedCommit{ID: out.IDs[c.ID], Tree: c.Tree})
	}
	w.Checks = []state.CheckResult{{Name: "test", Command: "make test"}, {Name: "lint", Command: "make lint", Code: 1}}
	s.task.Work = w
	s.task.AddPublication(time.Now(), time.Time{})
}

// statement returns the comment with the statement about the task.
func (s *scene) statement() string {
	s.t.Helper()
	signer := provenance.Signer{Key: s.key, Version: "v1", PublicURL: "https://errand.example", Redact: func(s string) string { return s }}
	made := forgetest.Must(signer.State(s.t.Context(), s.task))(s.t)
	p := state.Post{Kind: state.PostProvenance, OnPR: true, Text: string(made.Envelope), Items: made.Summary}
	return comment.Render(s.task, p, comment.View{Slug: "errand", Key: fmt.Sprintf("1.provenance-%d", s.task.PR.Number), Now: time.Now()})
}

// post writes the comment with the statement, as errand.
func (s *scene) post(body string) {
	s.t.Helper()
	for i, p := range s.task.Posted {
		if p.Kind == string(state.PostProvenance) {
			forgetest.Must(s.Forge.EditComment(s.t.Context(), s.Repo, s.task.Posted[i].ID, body))(s.t)
			return
		}
	}
	c := forgetest.Must(s.Forge.CreateComment(s.t.Context(), s.Repo, s.task.PR.Number, body))(s.t)
	s.task.Posted = append(s.task.Posted, state.Posted{Kind: string(state.PostProvenance), ID: c.ID})
}

// posted returns the comment with the statement.
func (s *scene) posted() int64 { return s.task.Posted[0].ID }

func (s *scene) key() (keyfile.Signing, error) { return keyfile.ReadSigning(s.keyFile, time.Now()) }

// keys returns the published keys.
func (s *scene) keys() []provenance.Key {
	s.t.Helper()
	file := forgetest.Must(provenance.PublishKeys(forgetest.Must(s.key())(s.t)))(s.t)
	return forgetest.Must(provenance.ParseKeys(file))(s.t)
}

func (s *scene) reader() *evidence.Reader {
	s.t.Helper()
	return forgetest.Must(evidence.New(evidence.Config{
		Token: s.token, WebURL: s.BaseURL(), APIURL: s.BaseURL() + "/api/v3/", GraphQLURL: s.BaseURL() + "/api/graphql",
		Transport: webtest.Transport(), Repository: forgetest.FullName,
	}))(s.t)
}

// force moves the branch of the pull request to another commit, as the App's token may.
func (s *scene) force(head string) {
	s.t.Helper()
	address := s.BaseURL() + "/api/v3/repos/octo/app/git/refs/heads/" + branch
	req := forgetest.Must(http.NewRequestWithContext(s.t.Context(), http.MethodPatch, address, strings.NewReader(`{"sha":"`+head+`","force":true}`)))(s.t)
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp := forgetest.Must(webtest.Client().Do(req))(s.t)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("move the branch: %s: %s", resp.Status, body)
	}
}

// faults returns the links that do not hold, as NAME: VERDICT.
func faults(r provenance.Report) string {
	var list []string
	for _, l := range r.Links {
		if l.Verdict != provenance.Holds {
			name, _, _ := strings.Cut(l.Name, " ")
			if l.Name == provenance.LinkPullRequest || strings.HasPrefix(l.Name, provenance.LinkApproval+" of") {
				name = l.Name
			}
			list = append(list, name+": "+string(l.Verdict))
		}
	}
	return strings.Join(list, ", ")
}
