package agentloop

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"unicode/utf8"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/attachment"
)

// picture is an attached image, as the model gets it.
type picture struct {
	media string // PNG, JPEG, GIF or WebP
	data  []byte
}

// encodedBytes returns the size of the picture in a request, 0 for none.
func (p *picture) encodedBytes() int {
	if p == nil {
		return 0
	}
	return base64.StdEncoding.EncodedLen(len(p.data))
}

// openViewer opens the directory of attachments.
func openViewer(dir string) (*editor, error) {
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open the attachments: %w", err)
	}
	return openEditor(actual, dir)
}

// viewerWords describes the viewer to the model.
func (t *toolbox) viewerWords() string {
	if t.viewer == nil {
		return ""
	}
	return " view also shows the attachments in " + t.viewer.dirs[1] + ": images as pictures."
}

// attached reports whether a call views an attachment, and returns its path in their directory.
func (t *toolbox) attached(call editCall) (file string, ok bool) {
	if t.viewer == nil || call.Command != "view" || call.Path == "" {
		return "", false
	}
	for _, dir := range t.editor.dirs {
		name := call.Path
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if file, err := t.viewer.relativePath(name); err == nil {
			return file, true
		}
	}
	return "", false
}

// viewAttached shows an attachment: an image as a picture, a text with line numbers.
func (t *toolbox) viewAttached(call editCall, file string) toolResult {
	if r := t.checkDenied(ruleRead, filepath.ToSlash(filepath.Join(t.viewer.dirs[1], file))); r != nil {
		return *r
	}
	if info, err := t.viewer.root.Stat(file); err == nil && info.IsDir() {
		text, err := t.viewer.list(file)
		if err != nil {
			return refusedResult("%v", err)
		}
		return toolResult{text: text}
	}
	data, err := t.viewer.readBytes(file)
	var outside outsideError
	if errors.As(err, &outside) {
		t.denials = append(t.denials, fmt.Sprintf("view outside of the attachments: %.100s", call.Path))
		return refusedResult("%s leads out of the attachments", file)
	}
	if err != nil {
		return refusedResult("%v", err)
	}
	media, _ := attachment.ImageType(data)
	switch {
	case media != "" && len(data) > attachment.MaxBytes:
		return refusedResult("%s has %d bytes; a picture for the model may have at most %d", file, len(data), attachment.MaxBytes)
	case media != "":
		return toolResult{text: fmt.Sprintf("%s: %s, %d bytes", file, media, len(data)), picture: &picture{media, data}}
	case !utf8.Valid(data):
		return refusedResult("%s is neither a text nor a PNG, JPEG, GIF or WebP image; use the shell", file)
	}
	text, err := t.viewer.view(file, call.ViewRange)
	if err != nil {
		return refusedResult("%v", err)
	}
	return toolResult{text: text}
}

// withinLimit returns the result, or an error if the conversation has pictures already that leave no room for another one.
func (r toolResult) withinLimit(has, limit int) toolResult {
	if r.picture == nil || has+r.picture.encodedBytes() <= limit {
		return r
	}
	return refusedResult("The picture is not shown: the pictures of this conversation may have at most %d bytes together, in base64. "+
		"Use the shell to make it smaller.", limit)
}

// block returns the result as a part of a message.
func (r toolResult) block(call string) anthropic.ContentBlockParamUnion {
	b := anthropic.NewToolResultBlock(call, r.text, r.failed)
	if r.picture != nil {
		b.OfToolResult.Content = append(b.OfToolResult.Content, anthropic.ToolResultBlockParamContentUnion{
			OfImage: anthropic.NewImageBlockBase64(r.picture.media, base64.StdEncoding.EncodeToString(r.picture.data)).OfImage,
		})
	}
	return b
}

// mayConcernPictures reports whether the API may have refused a request because of its pictures: it cannot read one, they
// are too large, or the model takes none.
func (f *failure) mayConcernPictures() bool {
	refused := f.status == http.StatusBadRequest || f.status == http.StatusRequestEntityTooLarge || f.kind == "request_too_large"
	return refused && f.toEnd().Cause != wire.CauseBilling
}

// pictureBytes returns the size of the conversation's pictures in a request.
func (s *session) pictureBytes() (n int) {
	for _, m := range s.messages {
		for _, b := range m.Content {
			if b.OfToolResult == nil {
				continue
			}
			for _, c := range b.OfToolResult.Content {
				if c.OfImage != nil && c.OfImage.Source.OfBase64 != nil {
					n += len(c.OfImage.Source.OfBase64.Data)
				}
			}
		}
	}
	return n
}

// removePictures replaces the pictures that the model has not answered yet by the reason, also in the file; if there are
// none, all pictures. It returns false if the conversation has none.
func (s *session) removePictures(reason string) (bool, error) {
	unanswered := len(s.messages)
	for unanswered > 0 && s.messages[unanswered-1].Role == anthropic.MessageParamRoleUser {
		unanswered--
	}
	for _, from := range []int{unanswered, 0} {
		rest, found := withoutPictures(s.messages[from:], reason)
		if !found {
			continue
		}
		// After a crash here, the conversation ends earlier and its last calls count as interrupted.
		if err := s.file.Truncate(s.starts[from]); err != nil {
			return false, fmt.Errorf("remove pictures from the session: %w", err)
		}
		s.size, s.messages, s.starts = s.starts[from], s.messages[:from], s.starts[:from]
		for _, m := range rest {
			if err := s.add(m); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// withoutPictures returns a copy of messages with the reason in place of pictures, and whether there were any.
func withoutPictures(messages []anthropic.MessageParam, reason string) (out []anthropic.MessageParam, found bool) {
	for _, m := range messages {
		content := m.Content
		m.Content = nil
		for _, b := range content {
			if b.OfToolResult != nil {
				result := *b.OfToolResult
				result.Content = nil
				for _, c := range b.OfToolResult.Content {
					if c.OfImage != nil {
						found = true
						c = anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{
							Text: "[The picture was removed because the model's API refused it: " + reason + "]",
						}}
					}
					result.Content = append(result.Content, c)
				}
				b.OfToolResult = &result
			}
			m.Content = append(m.Content, b)
		}
		out = append(out, m)
	}
	return out, found
}
