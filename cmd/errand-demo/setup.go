package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

const guide = `A simulated GitHub Enterprise Server runs at %[1]s, and a model. There you are %[2]s, who owns the repository %[3]s.
Keep this running, and type the commands below in another terminal.

1. Set errand up. It prints the addresses of two pages: create the App on the first, and install it on the second.

     %[4]s setup --dir %[5]s --answers %[6]s --skip service

   With --github %[1]s instead of --answers FILE it asks you; that file has the answers to give.

2. Start errand, and keep it running:

     %[4]s serve -c %[5]s/config.yml

3. Open the issue, and choose %[7]s under "Assignees". Give each plan a 👍. Then ask for a change in a review of the pull request, and merge it.

     %[8]s

Ctrl-C ends the simulators and deletes %[9]s.
`

// trial simulates GitHub and a model until ctx ends, for somebody who tries `errand setup`. keep reports whether the folder has to stay.
func trial(ctx context.Context, out io.Writer, dir string, log zerolog.Logger) (keep bool, err error) {
	exe, err := os.Executable()
	if err != nil {
		return false, fmt.Errorf("find the program: %w", err)
	}
	program := filepath.Join(filepath.Dir(exe), "errand")
	if _, err := os.Stat(program); err != nil {
		return false, fmt.Errorf("%w: `make build` writes it", err)
	}
	t, err := demo.NewTrial(dir, log)
	if err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(out, guide, t.GitHub.BaseURL(), demo.Maintainer, demo.Full, remote.Quote(program), remote.Quote(t.Folder), remote.Quote(t.Answers), demo.Machine, t.Issue, dir); err != nil {
		return false, fmt.Errorf("print the guide: %w", err)
	}
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	switch err = t.EndSandboxes(ending, filepath.Dir(exe)); {
	case errors.Is(err, boltkv.ErrLocked):
		_, _ = fmt.Fprintf(out, "\nerrand still runs, so its files were not deleted. Stop it, and delete %s.\n", dir)
		keep, err = true, nil
	case err != nil:
		keep, err = true, fmt.Errorf("%w\nThe files were not deleted, because agents may still use them. When none works any more, delete %s", err, dir)
	}
	return keep, errors.Join(err, t.Close())
}

// endTimeout bounds the end of the sandboxes that errand left behind.
const endTimeout = 30 * time.Second
