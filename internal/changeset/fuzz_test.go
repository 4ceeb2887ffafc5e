package changeset_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/internal/changeset"
)

// FuzzDecode checks that every accepted changeset is within the limits, contains only paths inside the tree and content
// that matches its id, and survives a round trip unchanged.
func FuzzDecode(f *testing.F) {
	data, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"base":"` + base + `","commits":[{"id":"` + first + `","parents":["` + base + `"],"tree":"` + tree + `","message":"m","changes":[{"path":".git/x","old_mode":"100644"}]}],"blobs":{}}`))
	f.Add([]byte(`{"base":"` + base + `","commits":[],"blobs":{"` + changeset.BlobID(nil) + `":""},"notes":["a"]}`))
	limits := changeset.Limits{Encoded: 1 << 16, Blobs: 1 << 10, Commits: 4, Changes: 8, Message: 200, Path: 60, Notes: 2}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, l := range []changeset.Limits{changeset.DefaultLimits(), limits} {
			c, err := changeset.Decode(bytes.NewReader(data), l)
			if err != nil {
				continue
			}
			checkAccepted(t, c, l)
			checkRoundTrip(t, c, l)
		}
	})
}

// FuzzEncode builds valid changesets from a short plan. Each is accepted and survives a round trip; with one byte of
// content changed it is refused.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("\x00a.txt\x01b/c\x02d\x03e\x04f"), "first", []byte("text\n"))
	f.Add([]byte("\x05x\x00\x01x\x02"), "ümlaut\n\nbody", []byte{0, 0xff})
	f.Fuzz(func(t *testing.T, plan []byte, message string, content []byte) {
		c := build(plan, message, content)
		checkAccepted(t, c, changeset.DefaultLimits())
		checkRoundTrip(t, c, changeset.DefaultLimits())
		for id, blob := range c.Blobs {
			c.Blobs[id] = append(slices.Clone(blob), 'x')
			if c.Validate(changeset.DefaultLimits()) == nil {
				t.Error("content of another id is accepted")
			}
			return
		}
	})
}

// build interprets each byte of a plan as a step: a new commit, or a change of a path derived from the byte.
func build(plan []byte, message string, content []byte) *changeset.Changeset {
	message = strings.ToValidUTF8(strings.ReplaceAll(message[:min(len(message), 1000)], "\x00", ""), "")
	c := &changeset.Changeset{Base: base, Blobs: map[string][]byte{}}
	head := base
	for i, b := range plan[:min(len(plan), 200)] {
		if b%8 == 0 || len(c.Commits) == 0 {
			id := fmt.Sprintf("%040x", 1000+i)
			c.Commits = append(c.Commits, changeset.Commit{ID: id, Parents: []string{head}, Tree: tree, Message: message})
			head = id
		}
		last := &c.Commits[len(c.Commits)-1]
		change := changeset.Change{Path: fmt.Sprintf("d%d/%c%d", b%3, 'a'+rune(b%26), len(last.Changes)), OldMode: changeset.ModeFile}
		if b%4 != 1 {
			blob := append(slices.Clone(content), b)
			change.Mode, change.Blob = changeset.ModeExecutable, changeset.BlobID(blob)
			c.Blobs[change.Blob] = blob
		}
		last.Changes = append(last.Changes, change)
		slices.SortFunc(last.Changes, func(a, b changeset.Change) int { return strings.Compare(a.Path, b.Path) })
	}
	return c
}

// checkAccepted verifies, with its own code, the properties that publishing relies on.
func checkAccepted(t *testing.T, c *changeset.Changeset, l changeset.Limits) {
	t.Helper()
	changes, size := 0, int64(0)
	known := map[string]bool{c.Base: true}
	head := c.Base
	for _, commit := range c.Commits {
		changes += len(commit.Changes)
		if known[commit.ID] || commit.Parents[0] != head || len(commit.Message) > l.Message {
			t.Fatalf("got commit %+v after %s", commit, head)
		}
		known[commit.ID], head = true, commit.ID
		for _, change := range commit.Changes {
			if change.Mode == "" != (change.Blob == "") {
				t.Errorf("got change %+v", change)
			}
			if content, ok := c.Blobs[change.Blob]; ok && changeset.BlobID(content) != change.Blob {
				t.Errorf("%s: got other content", change.Blob)
			}
		}
	}
	for _, content := range c.Blobs {
		size += int64(len(content))
	}
	if len(c.Commits) > l.Commits || changes > l.Changes || size > l.Blobs || len(c.Notes) > l.Notes || head != c.Head() || size != c.Stats().Bytes {
		t.Errorf("got %d commits, %d changes, %d bytes, head %s of %+v", len(c.Commits), changes, size, head, l)
	}
	paths := map[string]bool{}
	for _, commit := range c.Commits {
		for _, change := range commit.Changes {
			paths[change.Path] = true
		}
	}
	if s := c.Stats(); s.Paths() > len(paths) {
		t.Errorf("got %+v for %v", s, paths)
	}
	for p := range paths {
		checkPath(t, p, l)
	}
}

// checkPath fails for paths outside the tree or inside git's directory on any system.
func checkPath(t *testing.T, p string, l changeset.Limits) {
	t.Helper()
	if len(p) > l.Path || strings.ContainsFunc(p, unicode.IsControl) {
		t.Errorf("got path %q", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		bare := strings.TrimRight(strings.ToLower(part), " .")
		if part == "" || part == "." || part == ".." || bare == ".git" || bare == "git~1" || strings.HasPrefix(bare, ".git:") {
			t.Errorf("got path %q was accepted", p)
		}
	}
}

// checkRoundTrip encodes and decodes a changeset twice and expects identical bytes.
func checkRoundTrip(t *testing.T, c *changeset.Changeset, l changeset.Limits) {
	t.Helper()
	l.Encoded = changeset.DefaultLimits().Encoded // spaces and names of escapes may make it longer
	var once, twice bytes.Buffer
	if err := changeset.Encode(&once, c); err != nil {
		t.Fatal(err)
	}
	wire := once.String()
	again, err := changeset.Decode(&once, l)
	if err != nil {
		t.Fatalf("accepted once only: %v", err)
	}
	if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("it comes back otherwise (-sent +got):\n%s", diff)
	}
	if err := changeset.Encode(&twice, again); err != nil || twice.String() != wire {
		t.Errorf("the second encoding differs: error %v", err)
	}
}
