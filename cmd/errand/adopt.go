package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/config"
)

// adoptCommand starts the tasks of issues that had a trigger before errand watched for it.
func adoptCommand(w world) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "adopt OWNER/REPO#N …",
		Short: "Start the tasks of issues that already had the label or assignee",
		Long: "Start the tasks of issues that had errand's label or assignee before errand was installed or configured for it. The\n" +
			"board lists them under “Not started”. The trigger counts as if it had been set now by the person who set it, who\n" +
			"needs write access. errand has to be running; the command reaches it at admin.listen or listen.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errUsage{errors.New("adopt takes issues, as OWNER/REPO#N")}
			}
			for _, a := range args {
				if !taskName.MatchString(a) {
					return errUsage{fmt.Errorf("adopt takes issues, as OWNER/REPO#N, but got %q", a)}
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(path, w.env)
			if err != nil {
				return err
			}
			return adopt(c.Context(), w, cfg, args)
		},
	}
	configFlag(c, &path)
	return c
}

// adopt asks the running errand to adopt issues, one after the other. A refusal does not affect the others.
func adopt(ctx context.Context, w world, cfg config.Config, issues []string) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	failed := 0
	for _, issue := range issues {
		who, err := adoptOne(ctx, cfg, issue)
		var refused refusedError
		if errors.As(err, &refused) {
			failed++
			_, _ = fmt.Fprintf(w.err, "%s: not started: %v\n", issue, err)
			continue
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w.out, "started: %s\n", who); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d issues were not started", failed, len(issues))
	}
	return nil
}

// refusedError is errand's reason for not starting a task.
type refusedError string

func (e refusedError) Error() string { return string(e) }

// adoptTimeout is the timeout for one issue, a little longer than errand's own.
const adoptTimeout = 70 * time.Second

// maxAnswer is the maximum length of errand's answer, in bytes.
const maxAnswer = 64 << 10

// adoptOne asks the running errand to adopt one issue, and returns who set its trigger.
func adoptOne(ctx context.Context, cfg config.Config, issue string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	repo, number, _ := strings.Cut(issue, "#")
	address := localAddress(cmp.Or(cfg.Admin.Listen, cfg.Listen))
	target := url.URL{Scheme: "http", Host: address, Path: "/tasks/" + repo + "/" + number + "/adopt"}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask errand: %w", err)
	}
	if token := cfg.Admin.Token.Reveal(); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("ask errand at %s: %w\nStart it with `errand serve`, and use its configuration with -c", address, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	text := strings.TrimSpace(string(body))
	switch {
	case err != nil:
		return "", fmt.Errorf("read errand's answer: %w", err)
	case answer.StatusCode == http.StatusOK:
		return text, nil
	case answer.StatusCode == http.StatusConflict, answer.StatusCode == http.StatusBadGateway:
		return "", refusedError(text)
	}
	return "", fmt.Errorf("errand at %s answered %s: %s", address, answer.Status, text)
}

// localAddress returns an address at which this host reaches a listener: one on all addresses is reached at a local one.
func localAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return listen
	}
	if strings.Contains(host, ":") {
		return net.JoinHostPort("::1", port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}
