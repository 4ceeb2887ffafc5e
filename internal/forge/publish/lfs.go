package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge/client"
)

// LargeFileError means that GitHub refused a large file.
type LargeFileError struct {
	OID     string
	Code    int    // like an HTTP status
	Message string // of GitHub
}

// Error returns the file and GitHub's message.
func (e *LargeFileError) Error() string {
	return fmt.Sprintf("large file %s: %s (%d)", e.OID, e.Message, e.Code)
}

// Explain fills in the class, the reason and the hint. Failures of GitHub are temporary, but quotas and rules are not.
func (e *LargeFileError) Explain(in *client.Error) {
	in.Status, in.Class, in.Reason = e.Code, client.ClassPermanent, "GitHub refused a large file: "+e.Message+"."
	in.Hint = "Check the repository's Git LFS settings and its storage quota, then comment `retry`."
	if e.Code >= 500 && e.Code != http.StatusInsufficientStorage || e.Code == http.StatusTooManyRequests {
		in.Class, in.Hint = client.ClassTemporary, ""
	}
}

// LargeFiles returns which of the objects exist in the repository's Git LFS; none if it is disabled.
func (p *Publisher) LargeFiles(ctx context.Context, r client.Repo, list []changeset.Pointer) (map[changeset.Pointer]bool, error) {
	existing := map[changeset.Pointer]bool{}
	if len(list) == 0 {
		return existing, nil
	}
	op, err := p.client.Read(ctx, r.Installation, "look for large files", "of "+r.FullName())
	if err != nil {
		return nil, err
	}
	token, _, err := p.client.Tokens().GitToken(ctx, r)
	if err != nil {
		return nil, err
	}
	responses, err := p.largeFiles(r, token).batch(ctx, "download", list)
	if client.StatusOf(err) == http.StatusUnauthorized {
		p.client.Tokens().ForgetToken(token) // a retry gets a new one
		return nil, op.Wrap(fmt.Errorf("the token was revoked early: %v", err))
	}
	var refused *github.ErrorResponse
	if errors.As(err, &refused) && refused.Response.StatusCode < 500 {
		p.client.Log().Warn().Err(err).Str("repository", r.FullName()).Msg("Git LFS is not available; assuming that no large file exists")
		return existing, nil
	}
	if err != nil {
		return nil, op.Wrap(err)
	}
	for _, l := range list {
		if o := responses[l]; o.Error == nil && o.Actions["download"].Href != "" {
			existing[l] = true
		}
	}
	return existing, nil
}

// UploadLargeFiles uploads objects, keyed by their SHA-256, to the repository's Git LFS, with a token for only this
// repository that it revokes afterwards. It can be repeated: objects that exist are not sent again. If GitHub refuses
// an object, the error is a *LargeFileError.
func (p *Publisher) UploadLargeFiles(ctx context.Context, r client.Repo, objects map[string][]byte) error {
	if len(objects) == 0 {
		return nil
	}
	op, err := p.client.Data(ctx, 0, "upload large files", "to "+r.FullName())
	if err != nil {
		return err
	}
	token, err := op.WriteToken(r)
	if err != nil {
		return err
	}
	defer func() {
		if err := p.client.Tokens().Revoke(context.WithoutCancel(ctx), token); err != nil {
			p.client.Log().Warn().Err(err).Msg("failed to revoke the token of an upload") // it expires within the hour
		}
	}()
	list := make([]changeset.Pointer, 0, len(objects))
	for _, oid := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, changeset.Pointer{OID: oid, Size: int64(len(objects[oid]))})
	}
	files := p.largeFiles(r, token)
	responses, err := files.batch(ctx, "upload", list)
	if err != nil {
		return op.Wrap(err)
	}
	for _, l := range list {
		o, ok := responses[l]
		if !ok {
			return op.Wrap(fmt.Errorf("request large files: GitHub did not answer for %s", l.OID))
		}
		if err := files.upload(ctx, o, objects[l.OID]); err != nil {
			return op.Wrap(fmt.Errorf("upload %s: %w", l.OID, err))
		}
	}
	return nil
}
