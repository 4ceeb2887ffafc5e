package web

import (
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// maxDiffLines is the maximum number of lines shown of a file; each line has a form.
const maxDiffLines = 1500

// fileView is one file of a diff.
type fileView struct {
	git.FileChange
	Anchor  string
	Lines   []diffLine
	Forms   bool         // with a form at each line
	Cut     int          // number of lines that are not shown
	Threads []threadView // threads about the whole file or older versions
}

// diffLine is one line of a diff with its threads and drafts.
type diffLine struct {
	Kind     string // add, del, same, hunk or note
	Old, New int    // numbers, 0 where there is none
	Text     string
	Form     *lineForm // nil where the person may not comment
	Threads  []threadView
	Drafts   []draft
}

// lineForm is the place of a comment on a line.
type lineForm struct {
	Path string
	Line int
	Side string
}

// diffExtras has the threads, drafts and forms to show in a diff.
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

// place adds forms, threads and drafts to their lines.
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
				placed[t.ID], t.Hunk = true, nil // its lines are right above it
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

// rows returns the lines of a hunk with their numbers.
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

// hunkTail returns the last lines of a thread's hunk.
func hunkTail(text string, max int) []diffLine {
	var out []diffLine
	for _, h := range git.ParseHunks(text) {
		out = append(out, rows(h)[1:]...)
	}
	return out[len(out)-min(max, len(out)):]
}

// Sign returns the sign of a line, for those who cannot see its color.
func (l diffLine) Sign() string {
	return map[string]string{"add": "+", "del": "−"}[l.Kind]
}

// Number returns the line's number, in the new version if it is there.
func (l diffLine) Number() int {
	if l.New > 0 {
		return l.New
	}
	return l.Old
}
