package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/goccy/go-yaml"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	installing "github.com/errand-bot/errand/internal/setup"
	"github.com/errand-bot/errand/internal/setup/setuptest"
)

// TestTaskRunsAfterSetup replaces the App of a world by one that `errand setup` creates. errand then works on an issue until its pull
// request is merged, with the App, the webhook secret, the trigger and the model of the setup.
func TestTaskRunsAfterSetup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := demo.New(t.Context(), demo.Config{
		Dir: filepath.Join(dir, "world"), BinDir: common.Bin, Agent: common.Agent("simagent"), StandIn: true, Kind: "plain", Fast: true,
		Key: rsatest.Key(), Log: zerolog.Nop(), Version: "e2e",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	before, err := config.Load(w.ConfigFile(), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	answers := filepath.Join(dir, "answers.yml")
	text, err := yaml.Marshal(map[string]any{
		"github": w.GitHub.BaseURL(), "public_url": w.URL, "listen": strings.TrimPrefix(w.URL, "http://"), "organization": demo.Owner, "app_name": "errand 2",
		"assignee": demo.Machine, "model_url": before.Models["anthropic"].URL, "model_key": "file:" + before.SecretFiles()["models.anthropic.key"],
	})
	if err == nil {
		err = os.WriteFile(answers, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	screen := &setuptest.Screen{}
	done := make(chan error, 1)
	go func() {
		done <- installing.Run(ctx, installing.Env{
			In: strings.NewReader(""), Out: screen, Lookup: os.LookupEnv, Now: time.Now, Transport: webtest.Transport(), Poll: 50 * time.Millisecond,
			Wait: patience, Program: "/opt/errand/bin/errand", TryModels: server.TryModels,
		}, installing.Options{Dir: filepath.Join(dir, "errand"), Answers: answers, Listen: "127.0.0.1:0", Skip: []string{"checks"}})
	}()
	setuptest.Play(ctx, t, screen, demo.Maintainer, demo.Full)
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	adoptConfig(t, w.ConfigFile(), filepath.Join(dir, "errand", "config.yml"))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	play := demo.Play{World: w, Say: t.Logf, Wait: func(string, time.Duration) {}, Patience: patience}
	if _, err := play.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.GitHub.App().Slug; got != "errand-2" {
		t.Errorf("the App is %s", got)
	}
}

// adoptConfig replaces the sections of a configuration by those that a setup wrote, except for the simulated agent and its data.
func adoptConfig(t *testing.T, path, from string) {
	t.Helper()
	var old, made map[string]any
	for file, into := range map[string]*map[string]any{path: &old, from: &made} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"github", "trigger", "admin", "models", "public_url", "provider"} {
		if old[key] = made[key]; made[key] == nil {
			t.Fatalf("the setup wrote no %s", key)
		}
	}
	text, err := yaml.Marshal(old)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
