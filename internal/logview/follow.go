package logview

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
)

// silence is how long a transcript without an end is followed after its task has ended: nothing was written for this long.
const silence = time.Minute

// follow prints entries as they are written. errand may restart meanwhile: its files stay.
func (v *view) follow(ctx context.Context) error {
	for first := true; ; first = false {
		over := v.over(time.Now()) // what was written until then is printed by this poll
		if err := v.poll(); err != nil {
			return err
		}
		if err := v.checkRun(); err != nil && !v.startsNext() {
			return err
		}
		switch {
		case over != "":
			return v.note("%s", over)
		case first && len(v.files) == 0:
			if err := v.note("There is no such transcript of %s yet; waiting for it. Ctrl-C ends this.", v.q.Task); err != nil {
				return err
			}
		}
		if clock.Sleep(ctx, v.q.Every) != nil {
			return nil
		}
	}
}

// startsNext reports whether the selected run would be the task's next one, whose transcript may begin at any moment.
func (v *view) startsNext() bool {
	return v.q.Run == v.unselected[len(v.unselected)-1].seq+1 && !v.taskEnded()
}

func (v *view) note(format string, args ...any) error {
	if v.q.Notes == nil {
		return nil
	}
	_, err := fmt.Fprintln(v.q.Notes, Plain(fmt.Sprintf(format, args...)))
	return err
}

// over returns why nothing more will be written, as a sentence, or an empty string.
func (v *view) over(now time.Time) string {
	var last *file
	for _, f := range v.files {
		if last == nil || f.seq > last.seq {
			last = f
		}
	}
	switch {
	case last == nil:
		return ""
	case v.q.Run != 0 && last.ended:
		return fmt.Sprintf("Run %d has ended.", last.seq)
	case !v.taskEnded():
		return ""
	case !last.ended && now.Sub(last.info.ModTime()) < silence:
		return ""
	}
	return fmt.Sprintf("The task %s has ended.", v.q.Task)
}

// taskEnded reports whether the task's newest life has ended. If in doubt it returns false.
func (v *view) taskEnded() bool {
	if len(v.lives) == 0 {
		return false
	}
	data, err := os.ReadFile(filepath.Join(v.dir(), v.lives[len(v.lives)-1]))
	if err != nil {
		return false // it was just replaced or pruned
	}
	var s state.Summary
	return json.Unmarshal(data, &s) == nil && s.Phase.Terminal()
}

// summariesAmong returns the names of the summaries of a task's lives, the newest last, among the entries of the folder: they have the
// number of the repository and the issue in common with the task's transcripts.
func summariesAmong(entries []os.DirEntry, files []*file) []string {
	if len(files) == 0 {
		return nil
	}
	newest := filepath.Base(files[len(files)-1].path)
	prefix := newest[:strings.LastIndexByte(newest, '-')+1] + "life-"
	life := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, prefix), summarySuffix))
		return n
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), summarySuffix) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return life(a) - life(b) })
	return names
}
