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

// Somebody on this host may ask the errand that has the store open for an image, by a file in a folder
// that belongs to errand's user alone: GROUP.wanted. The answer is GROUP.result.
const (
	wantedExt = ".wanted"
	resultExt = ".result"
	// lookEvery is how often that folder is looked at, and how often who asked looks for the answer.
	lookEvery = 2 * time.Second
)

// Result is how a baking that was asked for has ended.
type Result struct {
	// Asked is the question that it answers.
	Asked string `json:"asked"`
	Image string `json:"image,omitempty"`
	Error string `json:"error,omitempty"`
}

// Ask has another errand bake an image of a group and waits for the end of it, or of ctx. id tells this
// question from others. dir is Config.Asked of the other one.
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
			return Result{}, fmt.Errorf("look for an image of %s: %w", group, err)
		}
		if err := wait(ctx, lookEvery); err != nil {
			return Result{}, err
		}
	}
}

// putFile writes a file whole or not at all.
func putFile(path string, data []byte) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
}

// answer bakes what somebody has asked for. A question is taken away before the baking begins, so that
// one that ends this process is not asked again and again.
func (b *Baker) answer(ctx context.Context) {
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
			b.cfg.Log.Warn().Err(err).Str("group", name).Msg("read who asks for a base image")
			continue
		}
		r := Result{Asked: string(id)}
		img, err := b.Bake(ctx, name)
		if r.Image = img.ID; err != nil {
			r.Error = err.Error()
			b.cfg.Log.Error().Err(err).Str("group", name).Msg("bake the base image that was asked for")
		}
		data, err := json.Marshal(r)
		if err == nil {
			err = putFile(filepath.Join(b.cfg.Asked, name+resultExt), data)
		}
		if err != nil {
			b.cfg.Log.Warn().Err(err).Str("group", name).Msg("answer who asked for a base image")
		}
	}
}
