package launch

import (
	"context"
	"fmt"
	"html"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/attachment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/prompts"
	"github.com/errand-bot/errand/state"
)

// Attachments finds and downloads the files attached to texts on GitHub; *attachment.Client is one.
type Attachments interface {
	Find(text string) []attachment.Ref
	Fetch(ctx context.Context, ref attachment.Ref, shown []attachment.Ref) (file attachment.File, reason string, err error)
}

const (
	maxAttachments = 40               // of a task
	attachmentTime = 90 * time.Second // for all downloads of a launch; signed addresses live for five minutes
)

const (
	reasonUnsaved = "errand could not store it"
	reasonLost    = "errand's copy of it was lost"
)

// An attachedText is a text that the prompt shows, and its place on GitHub.
type attachedText struct {
	text string
	at   forge.TextRef
}

// attachedTexts returns the texts of a prompt that may have attachments: the frozen one first.
func (s *Steps) attachedTexts(t *state.Task) []attachedText {
	frozen := attachedText{at: forge.TextRef{Issue: t.Key.Issue}}
	if t.Context.ShowsIssue {
		frozen.text = step.Shown(t.Frozen.Body, s.Redact)
	}
	out := []attachedText{frozen}
	for _, c := range t.Context.Comments {
		out = append(out, attachedText{step.Shown(c.Body, s.Redact), forge.TextRef{Comment: c.ID}})
	}
	for _, f := range t.Feedback {
		if at, ok := placeOf(t, f); ok {
			out = append(out, attachedText{step.Shown(f.Body, s.Redact), at})
		}
	}
	return out
}

// AttachedToIssue returns the addresses of the files attached to the issue's frozen text, which the agent gets if it sees that text.
func (s *Steps) AttachedToIssue(t *state.Task) []string {
	out := []string{}
	if s.Attachments == nil {
		return out
	}
	for _, ref := range s.Attachments.Find(s.attachedTexts(t)[0].text) {
		out = append(out, ref.URL)
	}
	return out
}

// placeOf returns where on GitHub people wrote feedback. It returns false for feedback by errand.
func placeOf(t *state.Task, f state.Feedback) (forge.TextRef, bool) {
	if id := t.ConditionComment(f); id != 0 {
		return forge.TextRef{Comment: id}, true
	}
	kind, rest, _ := strings.Cut(f.ID, ":")
	id, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case f.Kind == state.FeedbackThread && t.PR != nil:
		return forge.TextRef{Pull: t.PR.Number, Threads: true}, true
	case err != nil:
	case kind == "comment":
		return forge.TextRef{Comment: id}, true
	case kind == "review" && t.PR != nil:
		return forge.TextRef{Pull: t.PR.Number, Review: id}, true
	}
	return forge.TextRef{}, false
}

// attachments reads the attachments of the prompt's texts that no earlier launch has read, puts those of the texts on the
// VM, next to the checkout, and returns them for the prompt. One that cannot be read is returned with the reason.
func (s *Steps) attachments(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) ([]prompts.Attachment, error) {
	if s.Attachments == nil {
		return nil, nil
	}
	t := w.Task
	r := &attachmentReader{steps: s, w: w, shown: map[forge.TextRef][]attachment.Ref{}, left: attachment.MaxFiles}
	short, cancel := context.WithTimeout(ctx, attachmentTime)
	defer cancel()
	var found []state.Attachment
	for i, text := range s.attachedTexts(t) {
		for _, ref := range s.Attachments.Find(text.text) {
			a := r.read(short, ref, text.at)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if i == 0 && a.SHA256 != "" {
				l.FrozenFiles = append(l.FrozenFiles, a.SHA256)
			}
			if !slices.ContainsFunc(found, func(b state.Attachment) bool { return b.ID == a.ID }) {
				found = append(found, a)
			}
		}
	}
	slices.Sort(l.FrozenFiles)
	l.FrozenFiles, l.FrozenHash, l.Attachments = slices.Compact(l.FrozenFiles), t.Frozen.Hash, r.added
	return s.placeAttachments(ctx, w, ws, found)
}

// An attachmentReader reads the attachments of one launch.
type attachmentReader struct {
	steps *Steps
	w     *step.Attempt
	shown map[forge.TextRef][]attachment.Ref // the attachments of each text as GitHub renders it
	added []state.Attachment
	left  int // further downloads
}

// read returns a known attachment, whose copy it restores if necessary, or downloads and stores a new one.
func (r *attachmentReader) read(ctx context.Context, ref attachment.Ref, at forge.TextRef) state.Attachment {
	for _, a := range slices.Concat(r.w.Task.Attachments, r.added) {
		if a.ID == ref.ID {
			r.restore(ctx, a, ref, at)
			return a
		}
	}
	a := state.Attachment{ID: ref.ID}
	if r.left == 0 || len(r.w.Task.Attachments)+len(r.added) >= maxAttachments {
		a.Unread = attachment.ReasonCount
		return a // it is not stored: a later run may read it
	}
	r.left--
	file, reason := r.fetch(ctx, ref, at)
	if reason == "" {
		digest, err := r.steps.Files.SaveAttachment(archiveName(r.w.Task), file.Content)
		if err != nil {
			r.w.Log.Warn().Err(err).Msg("failed to store an attachment")
			reason = reasonUnsaved
		}
		a.Name, a.Type, a.Bytes, a.SHA256 = file.Name, file.Type, int64(len(file.Content)), digest
	}
	if reason != "" {
		a = state.Attachment{ID: ref.ID, Unread: reason}
	}
	r.added = append(r.added, a)
	return a
}

// restore downloads a known attachment again if errand's copy of it is lost or damaged. If GitHub now serves different content,
// LoadAttachment does not find it under the known digest, and the attachment is listed as lost.
func (r *attachmentReader) restore(ctx context.Context, a state.Attachment, ref attachment.Ref, at forge.TextRef) {
	if a.SHA256 == "" || r.left == 0 {
		return
	}
	files, task := r.steps.Files, archiveName(r.w.Task)
	_, err := files.LoadAttachment(task, a.SHA256, attachment.MaxBytes)
	if err == nil {
		return
	}
	r.w.Log.Warn().Err(err).Msg("failed to read a stored attachment, downloading it again")
	r.left--
	file, reason := r.fetch(ctx, ref, at)
	if reason != "" {
		return // it is listed as lost
	}
	if _, err := files.SaveAttachment(task, file.Content); err != nil {
		r.w.Log.Warn().Err(err).Msg("failed to store an attachment")
	}
}

func (r *attachmentReader) fetch(ctx context.Context, ref attachment.Ref, at forge.TextRef) (attachment.File, string) {
	shown, known := r.shown[at]
	if !known {
		rendered, err := r.steps.GitHub.Rendered(ctx, r.w.Repo, at)
		if err != nil {
			r.w.Log.Warn().Err(err).Msg("failed to read a text with attachments as GitHub shows it")
			return attachment.File{}, attachment.ReasonFailed
		}
		shown = r.steps.Attachments.Find(html.UnescapeString(rendered))
		r.shown[at] = shown
	}
	file, reason, err := r.steps.Attachments.Fetch(ctx, ref, shown)
	if err != nil { // the time for all of them is over
		return attachment.File{}, attachment.ReasonFailed
	}
	return file, reason
}

// placeAttachments copies attachments to the VM and describes them for the prompt.
func (s *Steps) placeAttachments(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, list []state.Attachment) ([]prompts.Attachment, error) {
	var out []prompts.Attachment
	for _, a := range list {
		p := prompts.Attachment{ID: a.ID, Type: a.Type, Bytes: a.Bytes, Unread: a.Unread}
		if a.SHA256 != "" {
			content, err := s.Files.LoadAttachment(archiveName(w.Task), a.SHA256, attachment.MaxBytes)
			if err != nil {
				w.Log.Warn().Err(err).Msg("failed to read a stored attachment")
				p.Unread = reasonLost
			} else {
				p.Path = path.Join(attachmentDir(ws), a.Name)
				if err := ws.Put(ctx, p.Path, content); err != nil {
					return nil, fmt.Errorf("put an attachment on the VM: %w", err)
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// attachmentDir returns the directory of attachments on the VM, next to the checkout.
func attachmentDir(ws *workspace.Workspace) string {
	return path.Join(path.Dir(ws.Place.Dir), "attachments")
}

// archiveName returns a task's name in the archive.
func archiveName(t *state.Task) string { return fmt.Sprintf("%d-%d", t.Key.Repo, t.Key.Issue) }
