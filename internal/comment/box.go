package comment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// A box's hidden marker names the revision and the approach (0 for none). A box in a plan's text cannot have one, because
// markdown.Embed removes errand's markers.
var (
	anyBox  = regexp.MustCompile(`(?m)^([ \t]*(?:>[ \t]*)*(?:[-*+]|\d{1,9}[.)])[ \t]+)\[[ xX]\]`)
	ourBox  = regexp.MustCompile(`(?m)^- \[([ xX])\] [^\n]*<!-- errand:box ([0-9a-f]{7,40}) ([0-9]) -->[ \t\r]*$`)
	openBox = "[ ]"
)

// ApprovalBox returns the line with the box that approves a revision.
func ApprovalBox(hash string) string {
	hash = state.ShortHash(hash)
	return fmt.Sprintf("- [ ] **Approve this plan** (`%s`) <!-- errand:box %s 0 -->", hash, hash)
}

// PublishBox returns the line with the box that approves changes.
func PublishBox(hash string) string {
	hash = state.ShortHash(hash)
	return fmt.Sprintf("- [ ] **Publish these changes** (`%s`) <!-- errand:box %s 0 -->", hash, hash)
}

// ApproachBox returns the line with the box that approves a revision with one of its approaches, numbered from 1. The title
// may be untrusted.
func ApproachBox(hash string, n int, title string) string {
	hash = state.ShortHash(hash)
	return fmt.Sprintf("- [ ] **Approve with approach %d**: %s <!-- errand:box %s %d -->", n, markdown.Line(title, 120), hash, n)
}

// BoxTicked compares a plan comment before and after an edit. onlyBox reports whether only boxes changed, ignoring line ends
// and trailing space; ticked whether the edit ticked an approval box, which is then returned. An edit that ticks two
// boxes is ambiguous and does not count as a tick.
func BoxTicked(before, after string) (onlyBox, ticked bool, box Box) {
	if BodyHash(before) != BodyHash(after) {
		return false, false, Box{}
	}
	was, is := boxes(before), boxes(after)
	onlyBox = normalBody(before, false) != normalBody(after, false)
	count := 0
	for key, full := range is {
		if full && !was[key] {
			count++
			box = key
		}
	}
	if count != 1 {
		return onlyBox, false, Box{}
	}
	return onlyBox, true, box
}

// Untick returns a plan comment with all boxes cleared.
func Untick(body string) string { return anyBox.ReplaceAllString(body, "${1}"+openBox) }

// UntickOthers clears all boxes except the one that approves a revision with this choice.
func UntickOthers(body, hash string, choice int) string {
	lines := strings.Split(body, "\n")
	for i, l := range lines {
		if !boxes(l)[Box{state.ShortHash(hash), choice}] {
			lines[i] = Untick(l)
		}
	}
	return strings.Join(lines, "\n")
}

// Ticked returns the choices of a revision whose boxes are ticked in its comment, in ascending order; 0 is the plan without
// a choice.
func Ticked(body, hash string) []int {
	var list []int
	for key, full := range boxes(body) {
		if full && key.Hash == state.ShortHash(hash) {
			list = append(list, key.Choice)
		}
	}
	slices.Sort(list)
	return list
}

// BodyHash returns the hash of a comment with cleared boxes, normalized line ends and no trailing space. Ticks and GitHub's
// own changes do not affect it; any other edit does.
func BodyHash(body string) string {
	sum := sha256.Sum256([]byte(normalBody(body, true)))
	return hex.EncodeToString(sum[:])
}

func normalBody(body string, empty bool) string {
	lines := strings.Split(markdown.Normalize(body), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	body = strings.TrimSpace(strings.Join(lines, "\n"))
	if empty {
		body = Untick(body)
	}
	return body
}

// Box identifies an approval box.
type Box struct {
	Hash   string // of the revision: its first digits
	Choice int    // the approach, 0 for none
}

// boxes returns the approval boxes of a comment and whether they are ticked.
func boxes(body string) map[Box]bool {
	found := map[Box]bool{}
	for _, m := range ourBox.FindAllStringSubmatch(markdown.Normalize(body), -1) {
		n, _ := strconv.Atoi(m[3])
		found[Box{m[2], n}] = m[1] != " "
	}
	return found
}
