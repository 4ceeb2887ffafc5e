package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/errand-bot/errand/internal/durable"
)

// progressFile has what an interrupted setup needs to continue. Its name is in error messages that tell people to restore it.
const progressFile = "setup.json"

// Progress is what a setup has done, apart from what the other files in its folder show.
type Progress struct {
	Answers map[string]string `json:"answers"` // without secrets
	App     *SavedApp         `json:"app,omitempty"`
}

// SavedApp is the App. Its secrets are removed once they are in their own files.
type SavedApp struct {
	ID            int64  `json:"id"`
	Slug          string `json:"slug"`
	SettingsURL   string `json:"settings_url"`
	PEM           string `json:"pem,omitempty"`
	WebhookSecret string `json:"webhook_secret,omitempty"`
	ClientID      string `json:"client_id,omitempty"`
	ClientSecret  string `json:"client_secret,omitempty"`
}

// maxProgress is the maximum size of the progress file, in bytes.
const maxProgress = 1 << 20

func (r *run) readProgress() (Progress, error) {
	p := Progress{Answers: map[string]string{}}
	data, err := readBounded(r.path(progressFile), maxProgress)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, fmt.Errorf("read the progress of an earlier setup: %w\nIf you delete %s, the setup asks everything again",
			err, r.path(progressFile))
	}
	if p.Answers == nil {
		p.Answers = map[string]string{}
	}
	return p, nil
}

func (r *run) saveProgress() error {
	if r.handed {
		return nil
	}
	data, err := json.MarshalIndent(r.progress, "", "  ")
	if err == nil {
		err = durable.WriteFile(r.path(progressFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("save the progress of the setup: %w; correct this, and %s", err, r.front.again())
	}
	return nil
}

// reserveName is a file that keeps room on the disk for the App's credentials.
const reserveName = "setup.reserve"

// reserve makes sure that the credentials of an App can be stored before the App is created.
func (r *run) reserve() error {
	room := make([]byte, 64<<10)
	for i := range room {
		room[i] = byte(i) // a file system could store zeros without using space
	}
	if err := durable.WriteFile(r.path(reserveName), room, 0o600); err != nil {
		return fmt.Errorf("reserve space for the App's credentials, so no App was created: %w", err)
	}
	return nil
}

// release frees the reserved space.
func (r *run) release() error {
	if err := os.Remove(r.path(reserveName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("free the reserved space: %w", err)
	}
	return nil
}

// saveApp stores the credentials of a new App, which GitHub shows once. If the folder cannot be written, they go to the folder for
// temporary files, and the error says how to continue with them.
func (r *run) saveApp(app SavedApp) error {
	r.progress.App = &app
	err := errors.Join(r.release(), r.saveProgress())
	if err == nil {
		return nil
	}
	data, merr := json.MarshalIndent(r.progress, "", "  ")
	f, ferr := os.CreateTemp("", "errand-"+progressFile+"-*") // readable by this user only
	if merr != nil || ferr != nil {
		return errors.Join(err, merr, ferr, r.lostApp(app.SettingsURL))
	}
	_, werr := f.Write(data)
	if werr = errors.Join(werr, f.Sync(), f.Close()); werr != nil {
		return errors.Join(err, werr, os.Remove(f.Name()), r.lostApp(app.SettingsURL))
	}
	r.rescued = f.Name()
	return fmt.Errorf("%w\nThe App exists; its credentials are in %s. Correct the problem, move that file to %s, and %s",
		err, f.Name(), r.path(progressFile), r.front.again())
}

// removeRescued removes the copy of the credentials that saveApp made, unless it was moved.
func (r *run) removeRescued() error {
	if r.rescued == "" {
		return nil
	}
	if err := os.Remove(r.rescued); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the copy of the App's credentials: %w", err)
	}
	r.rescued = ""
	return nil
}

// lostApp tells how to use an App whose credentials were lost.
func (r *run) lostApp(settings string) error {
	return fmt.Errorf("the App may exist although its credentials were not stored. Within an hour, %s, with "+
		"`app: code` and the code in the browser's address.\nIf GitHub does not accept it any more, open %s: delete the App, or "+
		"generate a private key and enter a new webhook secret there, and give both to errand setup with `app: existing`", r.front.again(), settings)
}
