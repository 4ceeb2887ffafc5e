package web

import (
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// maxDiffLines is how many lines of a file are shown with a form at each; of larger ones the rest is left out.
const maxDiffLines = 1500

// fileView is one file of a diff.
type fileView struct {
	git.FileChange
	Anchor  string
	Lines   []diffLine
	Forms   bool         // lines can be commented on
	Cut     int          // lines that are not shown
	Threads []threadView // about the whole file, or of older versions
}

// diffLine is one line of a diff with what was said there.
type diffLine struct {
	Kind     string // add, del, same, hunk or note
	Old, New int    // numbers, 0 where there is none
	Text     string
	Form     *lineForm // nil where nobody may comment
	Threads  []threadView
	Drafts   []draft
}

// lineForm is the place that a comment on a line is about.
type lineForm struct {
	Path string
	Line int
	Side string
}

// diffExtras is what a diff is shown with.
type diffExtras struct {
	threads []threadView
	drafts  []draft
	form    bool
}

func diffView(files []git.FileChange, with diffExtras) (out []fileView) {
	for n, f := range files {
		fv := fileView{FileChange: f, Forms: with.form, Anchor: "diff-" + itoa(int64(n))}
		for _, h := range git.ParseHunks(f.Patch) {
			fv.Lines = append(fv.Lines, rows(h)...)
		}
		if len(fv.Lines) > maxDiffLines {
			fv.Cut = len(fv.Lines) - maxDiffLines
			fv.Lines = fv.Lines[:maxDiffLines]
		}
		fv.place(with)
		out = append(out, fv)
	}
	return out
}

// place puts forms, threads and drafts where they belong.
func (f *fileView) place(with diffExtras) {
	placed := map[int64]bool{}
	for n := range f.Lines {
		l := &f.Lines[n]
		side, number := "RIGHT", l.New
		switch l.Kind {
		case "hunk", "note":
			continue
		case "del":
			side, number = "LEFT", l.Old
		}
		if with.form {
			l.Form = &lineForm{Path: f.Path, Line: number, Side: side}
		}
		for _, t := range with.threads {
			if t.Path == f.Path && t.line > 0 && t.line == number && t.left == (side == "LEFT") {
				placed[t.ID], t.Hunk = true, nil // the lines are right above
				l.Threads = append(l.Threads, t)
			}
		}
		for _, d := range with.drafts {
			if d.Path == f.Path && d.Line == number && d.Side == side {
				l.Drafts = append(l.Drafts, d)
			}
		}
	}
	for _, t := range with.threads {
		if t.Path == f.Path && !placed[t.ID] {
			f.Threads = append(f.Threads, t)
		}
	}
}

// rows numbers the lines of a hunk.
func rows(h git.Hunk) (out []diffLine) {
	oldLine, newLine := h.OldStart, h.NewStart
	for n, text := range h.Lines {
		if n == 0 {
			out = append(out, diffLine{Kind: "hunk", Text: text})
			continue
		}
		if text == "" {
			continue
		}
		l := diffLine{Text: text[1:]}
		switch text[0] {
		case '+':
			l.Kind, l.New = "add", newLine
			newLine++
		case '-':
			l.Kind, l.Old = "del", oldLine
			oldLine++
		case ' ':
			l.Kind, l.Old, l.New = "same", oldLine, newLine
			oldLine++
			newLine++
		default: // "\ No newline at end of file"
			l.Kind, l.Text = "note", strings.TrimPrefix(text, "\\ ")
		}
		out = append(out, l)
	}
	return out
}

// hunkTail is the end of a thread's hunk.
func hunkTail(text string, max int) []diffLine {
	var out []diffLine
	for _, h := range git.ParseHunks(text) {
		out = append(out, rows(h)[1:]...)
	}
	return out[len(out)-min(max, len(out)):]
}

// Sign is the mark of a line, for those who do not see its color.
func (l diffLine) Sign() string {
	return map[string]string{"add": "+", "del": "−"}[l.Kind]
}

// Number is the line's number on the side that it belongs to.
func (l diffLine) Number() int {
	if l.New > 0 {
		return l.New
	}
	return l.Old
}
