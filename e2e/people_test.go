package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// act is an action of a person: as NAME VERB ARGS.
type act func(p *performer, args []string) error

// performer is a person who performs an act.
type performer struct {
	simgithub.Person
	ts *testscript.TestScript
	s  *story
}

// acts are the possible actions of people. As the number of an issue, "." means the story's issue and "pr" its pull
// request. A text may be the name of a file.
func acts() map[string]act {
	all := map[string]act{
		"open-issue": openIssue, "edit-issue": editIssue, "upload": upload, "close": closeIssue, "reopen": func(p *performer, a []string) error { return p.Reopen(p.s.full, p.number(a, 0)) },
		"assign": assign, "unassign": unassign,
		"label":   func(p *performer, a []string) error { return p.AddLabels(p.s.full, p.number(a, 0), a[1]) },
		"unlabel": func(p *performer, a []string) error { return p.RemoveLabel(p.s.full, p.number(a, 0), a[1]) },
		"comment": func(p *performer, a []string) error {
			_, err := p.Comment(p.s.full, p.number(a, 0), p.text(a, 1))
			return err
		},
		"react":   func(p *performer, a []string) error { return p.React(p.s.full, p.comment(a[0]), a[1]) },
		"unreact": func(p *performer, a []string) error { return p.Unreact(p.s.full, p.comment(a[0]), a[1]) },
		"react-issue": func(p *performer, a []string) error {
			return p.ReactToIssue(p.s.full, p.number(a, 0), a[1])
		},
		"tick": tick, "untick": untick, "edit-comment": editComment,
		"delete-comment": func(p *performer, a []string) error { return p.DeleteComment(p.s.full, p.comment(a[0])) },
		"permission":     func(p *performer, a []string) error { return p.SetPermission(p.s.full, a[0], simgithub.Role(a[1])) },
		"profile":        func(p *performer, a []string) error { return p.SetName(p.text(a, 0)) },
		"review":         review, "approve-pr": func(p *performer, a []string) error { return review(p, []string{"pr", "APPROVE"}) },
		"draft":   func(p *performer, a []string) error { return p.SetDraft(p.s.full, p.number(a, 0), len(a) == 1) },
		"reply":   reply,
		"resolve": resolve,
		"push":    push,
		"update-branch": func(p *performer, a []string) error {
			return p.UpdateBranch(p.s.full, p.number(a, 0), simgithub.BranchUpdate{})
		},
		"delete-branch": func(p *performer, a []string) error { return p.DeleteBranch(p.s.full, p.s.branch(a[0])) },
		"open-pull":     openPull, "blocked-by": blockedBy,
		"sub-issue": func(p *performer, a []string) error {
			return p.AddSubIssue(p.s.full, p.number(a, 0), p.s.repo().Issues[p.number(a, 1)].ID)
		},
		"lock":         func(p *performer, a []string) error { return p.Lock(p.s.full, p.number(a, 0), "too heated") },
		"unlock":       func(p *performer, a []string) error { return p.Unlock(p.s.full, p.number(a, 0)) },
		"delete-issue": func(p *performer, a []string) error { return p.DeleteIssue(p.s.full, p.number(a, 0)) },
		"transfer-issue": func(p *performer, a []string) error {
			for _, c := range p.s.byBot(p.number(a, 0)) {
				p.s.moved[c.ID] = true
			}
			_, err := p.TransferIssue(p.s.full, p.number(a, 0), demo.Owner+"/"+a[1])
			return err
		},
	}
	maps.Copy(all, mergeActs())
	return all
}

// as acts as a person; "NAME[bot]" is another App.
func as(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: as NAME VERB [ARGS]")
	}
	s := of(ts)
	if strings.HasSuffix(args[0], "[bot]") && !s.bots[args[0]] {
		s.bots[args[0]] = true
		s.w.GitHub.AddBot(args[0])
	}
	do, ok := acts()[args[1]]
	if !ok {
		ts.Fatalf("unknown act %q", args[1])
	}
	err := do(&performer{Person: s.w.GitHub.As(args[0]), ts: ts, s: s}, args[2:])
	if neg && err == nil {
		ts.Fatalf("got no error when %s tried to %s", args[0], args[1])
	}
	if !neg {
		ts.Check(err)
	}
}

// number reads the number of an issue or pull request.
func (p *performer) number(args []string, n int) int {
	if len(args) <= n {
		return p.s.issue
	}
	v, err := p.s.number(args[n])
	p.ts.Check(err)
	return v
}

func (s *story) number(word string) (int, error) {
	switch word {
	case ".":
		return s.issue, nil
	case "pr":
		newest := 0
		for _, i := range s.repo().Issues {
			if i.Pull != nil && i.Author == s.w.GitHub.App().BotLogin {
				newest = max(newest, i.Number)
			}
		}
		if newest > 0 {
			return newest, nil
		}
		return 0, errors.New("errand has opened no pull request")
	}
	return strconv.Atoi(word)
}

// text returns the remaining arguments, or the content of the file that they name.
func (p *performer) text(args []string, n int) string {
	if len(args) <= n {
		return ""
	}
	text := strings.Join(args[n:], " ")
	if !strings.ContainsAny(text, " \n") && filepath.Ext(text) == ".md" {
		return p.s.withUploads(p.ts.ReadFile(text))
	}
	return p.s.withUploads(strings.ReplaceAll(text, `\n`, "\n"))
}

// withUploads replaces "{NAME}" by the address of an upload with this name.
func (s *story) withUploads(text string) string {
	for name, address := range s.uploads {
		text = strings.ReplaceAll(text, "{"+name+"}", address)
	}
	return text
}

// upload attaches a file: upload NAME [CONTENT]. The default content begins like a PNG image and ends with the name.
func upload(p *performer, a []string) error {
	content := "\x89PNG\r\n\x1a\n" + a[0]
	if len(a) > 1 {
		content = strings.Join(a[1:], " ")
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(content, "size=")); err == nil {
		content = "\x89PNG\r\n\x1a\n" + strings.Repeat(".", n)
	}
	address, err := p.Upload(p.s.full, a[0], []byte(content))
	p.s.uploads[a[0]] = address
	return err
}

// comment finds a comment: plan:newest, plan:N (the N-th one posted), status, or last:NAME.
func (p *performer) comment(word string) int64 {
	id, err := p.s.comment(word)
	p.ts.Check(err)
	return id
}

func (s *story) comment(word string) (int64, error) {
	kind, which, _ := strings.Cut(word, ":")
	switch kind {
	case "plan":
		c, err := s.planComment(which)
		if err != nil {
			return 0, err
		}
		return c.ID, nil
	case "status":
		for _, c := range s.byBot(s.issue) {
			if isStatus(c.Body) {
				return c.ID, nil
			}
		}
	case "last":
		for _, c := range slices.Backward(s.repo().Issues[s.issue].Comments) {
			if c.Author == which {
				return c.ID, nil
			}
		}
	}
	return 0, fmt.Errorf("there is no comment %q", word)
}

// planComment finds the N-th comment with a plan, or the newest.
func (s *story) planComment(which string) (*simgithub.Comment, error) {
	var plans []*simgithub.Comment
	for _, c := range s.byBot(s.issue) {
		if planHash(c.Body) != "" {
			plans = append(plans, c)
		}
	}
	n := len(plans)
	if which != "newest" && which != "" {
		var err error
		if n, err = strconv.Atoi(which); err != nil {
			return nil, err
		}
	}
	if n < 1 || n > len(plans) {
		return nil, fmt.Errorf("plan %q not found among %d", which, len(plans))
	}
	return plans[n-1], nil
}

// byBot lists errand's comments on an issue or pull request.
func (s *story) byBot(number int) []*simgithub.Comment {
	var list []*simgithub.Comment
	i := s.repo().Issues[number]
	if i == nil {
		return nil
	}
	for _, c := range i.Comments {
		if c.Author == s.w.GitHub.App().BotLogin {
			list = append(list, c)
		}
	}
	return list
}

func openIssue(p *performer, a []string) error {
	i, err := p.OpenIssue(p.s.full, simgithub.NewIssue{Title: a[0], Body: p.text(a, 1)})
	if err != nil {
		return err
	}
	p.s.issue = i.Number
	p.ts.Setenv("ISSUE", strconv.Itoa(i.Number))
	return nil
}

func editIssue(p *performer, a []string) error {
	var in simgithub.IssueEdit
	for _, arg := range a[1:] {
		k, v, _ := strings.Cut(arg, "=")
		v = p.text([]string{v}, 0)
		switch k {
		case "title":
			in.Title = &v
		case "body":
			in.Body = &v
		default:
			return fmt.Errorf("unknown field %q", k)
		}
	}
	return p.EditIssue(p.s.full, p.number(a, 0), in)
}

func closeIssue(p *performer, a []string) error {
	return p.Close(p.s.full, p.number(a, 0), "completed")
}

func assign(p *performer, a []string) error {
	who := demo.Machine
	if len(a) > 1 {
		who = a[1]
	}
	n := p.number(a, 0)
	p.s.issue = n
	return p.Assign(p.s.full, n, who)
}

func unassign(p *performer, a []string) error {
	return p.Unassign(p.s.full, p.number(a, 0), demo.Machine)
}

// tick ticks the approval checkbox of a plan: tick plan:newest [WORDS of the checkbox].
func tick(p *performer, a []string) error { return setBox(p, a, "[ ]", "[x]") }

// untick clears a checkbox in a comment by errand: the first ticked one, or the first whose line has the words.
func untick(p *performer, a []string) error { return setBox(p, a, "[x]", "[ ]") }

// setBox edits the first checkbox of a comment that is in the state from: COMMENT [WORDS of the checkbox].
func setBox(p *performer, a []string, from, to string) error {
	id := p.comment(a[0])
	for _, c := range p.s.byBot(p.s.issue) {
		if c.ID != id {
			continue
		}
		lines := strings.Split(c.Body, "\n")
		for i, l := range lines {
			if strings.Contains(l, from) && (len(a) < 2 || strings.Contains(l, a[1])) {
				lines[i] = strings.Replace(l, from, to, 1)
				return p.EditComment(p.s.full, id, strings.Join(lines, "\n"))
			}
		}
	}
	return fmt.Errorf("the comment has no checkbox %s", from)
}

// editComment appends to a comment (edit-comment REF +TEXT) or replaces it.
func editComment(p *performer, a []string) error {
	id, text := p.comment(a[0]), p.text(a, 1)
	if add, ok := strings.CutPrefix(text, "+"); ok {
		for _, c := range p.s.repo().Issues[p.s.issue].Comments {
			if c.ID == id {
				text = c.Body + "\n" + add
			}
		}
	}
	return p.EditComment(p.s.full, id, text)
}

// review submits a review: review pr EVENT [BODY] [PATH:LINE:TEXT …].
func review(p *performer, a []string) error {
	in := simgithub.NewReview{Event: a[1]}
	for _, arg := range a[2:] {
		part := strings.SplitN(arg, ":", 3)
		if len(part) == 3 {
			if line, err := strconv.Atoi(part[1]); err == nil {
				in.Comments = append(in.Comments, simgithub.NewReviewComment{Path: part[0], Line: line, Body: p.s.withUploads(part[2])})
				continue
			}
		}
		in.Body = p.text([]string{arg}, 0)
	}
	_, err := p.Review(p.s.full, p.number(a, 0), in)
	return err
}

// thread returns the N-th thread of the pull request.
func (p *performer) thread(n string) (pr int, id int64, err error) {
	pr = p.number([]string{"pr"}, 0)
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0, 0, err
	}
	threads := p.s.repo().Issues[pr].Pull.Threads
	if i < 1 || i > len(threads) {
		return 0, 0, fmt.Errorf("got %d threads, want more", len(threads))
	}
	return pr, threads[i-1].ID, nil
}

// resolve resolves the N-th thread of the pull request: resolve N.
func resolve(p *performer, a []string) error {
	pr, id, err := p.thread(a[0])
	if err != nil {
		return err
	}
	return p.ResolveThread(p.s.full, pr, id, true)
}

// reply answers in the N-th thread of the pull request: reply N TEXT.
func reply(p *performer, a []string) error {
	pr, id, err := p.thread(a[0])
	if err != nil {
		return err
	}
	_, err = p.ReplyToThread(p.s.full, pr, id, p.text(a, 1))
	return err
}

// push commits one file: push BRANCH PATH TEXT|FILE [FROM]; BRANCH may be "errand".
func push(p *performer, a []string) error {
	c := simgithub.Commit{Branch: p.s.branch(a[0]), Message: "Change " + a[1], Files: map[string]string{}}
	if len(a) > 3 {
		c.From = a[3]
	}
	text := strings.ReplaceAll(a[2], `\n`, "\n")
	if data, err := os.ReadFile(p.ts.MkAbs(a[2])); err == nil {
		text = string(data)
	}
	c.Files[a[1]] = text
	_, err := p.PushCommit(p.s.full, c)
	return err
}

// branch returns a branch's name; "errand" stands for the branch of the story's task.
func (s *story) branch(name string) string {
	if t := s.task(s.issue); name == "errand" && t != nil {
		return t.Branch.Name
	}
	return name
}

func openPull(p *performer, a []string) error {
	_, err := p.OpenPull(p.s.full, simgithub.NewPull{Title: a[0], Head: a[1], Body: p.text(a, 2)})
	return err
}

func blockedBy(p *performer, a []string) error {
	return p.AddBlockedBy(p.s.full, p.number(a, 0), p.s.repo().Issues[p.number(a, 1)].ID)
}
