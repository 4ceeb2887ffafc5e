package git

import (
	"strings"
	"sync"
)

// Bounds of the kept outputs: their number, and the length of each in bytes.
const (
	maxFixed       = 500
	maxFixedLength = 64 << 10
)

// fixedOutputs keeps outputs of git commands by their arguments.
type fixedOutputs struct {
	mu  sync.Mutex
	all map[string]string
}

// fixedOutput is Output for commands whose arguments are options and commits, without paths. What full object ids refer
// to never changes, so their output is kept: many webhooks and answers contain the same pull request.
func (r *Repository) fixedOutput(args ...string) (string, error) {
	for _, arg := range args[1:] {
		for rev := range strings.SplitSeq(arg, "...") {
			if !strings.HasPrefix(arg, "-") && !ValidSHA(rev) {
				return r.Output(args...)
			}
		}
	}
	key := strings.Join(args, " ")
	r.fixed.mu.Lock()
	out, kept := r.fixed.all[key]
	r.fixed.mu.Unlock()
	if kept {
		return out, nil
	}
	out, err := r.Output(args...)
	if err != nil || len(out) > maxFixedLength {
		return out, err
	}
	r.fixed.mu.Lock()
	defer r.fixed.mu.Unlock()
	if r.fixed.all == nil || len(r.fixed.all) >= maxFixed {
		r.fixed.all = map[string]string{}
	}
	r.fixed.all[key] = out
	return out, nil
}
