package bake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// A process on this host can ask the running errand, which has the store open, to bake an image. It writes the request
// GROUP.wanted into a folder that only errand's user can access, and errand answers with GROUP.result.
const (
	wantedExt = ".wanted"
	resultExt = ".result"
	// askEvery applies to both sides: errand looks for requests and the requester looks for the answer.
	askEvery = 2 * time.Second
)

// Result is the outcome of a requested bake.
type Result struct {
	// Asked is the ID of the request.
	Asked string `json:"asked"`
	Image string `json:"image,omitempty"`
	Error string `json:"error,omitempty"`
}

// Ask requests a bake of a group's image from another errand process and waits until it finishes or ctx ends. id
// identifies the request; dir is that process's Config.Asked.
func Ask(ctx context.Context, dir, group, id string, wait func(context.Context, time.Duration) error) (Result, error) {
	if !groupName.MatchString(group) {
		return Result{}, fmt.Errorf("bake %s: %w", group, ErrUnknownGroup)
	}
	if err := putFile(filepath.Join(dir, group+wantedExt), []byte(id)); err != nil {
		return Result{}, fmt.Errorf("ask for an image of %s: %w", group, err)
	}
	for {
		var r Result
		data, err := os.ReadFile(filepath.Join(dir, group+resultExt))
		if err == nil && json.Unmarshal(data, &r) == nil && r.Asked == id {
			return r, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Result{}, fmt.Errorf("wait for an image of %s: %w", group, err)
		}
		if err := wait(ctx, askEvery); err != nil {
			return Result{}, err
		}
	}
}

// putFile writes a file atomically.
func putFile(path string, data []byte) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
}

// serveRequests serves pending requests. It removes a request before it bakes the image, so that a bake that crashes the
// process is not repeated after each restart.
func (b *Baker) serveRequests(ctx context.Context) {
	if b.cfg.Asked == "" {
		return
	}
	for name := range b.cfg.Groups {
		path := filepath.Join(b.cfg.Asked, name+wantedExt)
		id, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			continue
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			b.cfg.Log.Warn().Err(err).Str("group", name).Msg("failed to read requests for base images")
			continue
		}
		r := Result{Asked: string(id)}
		img, err := b.Bake(ctx, name)
		if r.Image = img.ID; err != nil {
			r.Error = err.Error()
			b.cfg.Log.Error().Err(err).Str("group", name).Msg("failed to bake the requested base image")
		}
		data, err := json.Marshal(r)
		if err == nil {
			err = putFile(filepath.Join(b.cfg.Asked, name+resultExt), data)
		}
		if err != nil {
			b.cfg.Log.Warn().Err(err).Str("group", name).Msg("failed to answer a request for a base image")
		}
	}
}
