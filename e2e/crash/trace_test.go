package crash

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// call is one system call in strace's output. Its begin and end are numbers in the order of the output, which respects
// causality between threads.
type call struct {
	name       string
	file       string // the meaning of its descriptor: a path, or socket:[inode]
	args       string // the other arguments, as escaped by strace
	result     int64
	begin, end int
}

// trace is the calls in the order of their ends.
type trace []call

var (
	begun   = regexp.MustCompile(`^(\d+) +(\w+)\(\d+<([^>]*)>,? ?(.*)$`)
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	result  = regexp.MustCompile(`\) += (-?\d+)(?: [^"]*)?$`)
)

const unfinished = "<unfinished ...>"

// readTrace reads the calls whose first argument is a descriptor from the output of `strace -f -y`. It ignores calls
// without an end, which were interrupted by a kill: nothing relied on their effect.
func readTrace(r io.Reader) (trace, error) {
	var t trace
	open := map[string]call{} // by thread
	lines := bufio.NewReader(r)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		line = strings.TrimSuffix(line, "\n")
		var c call
		if m := begun.FindStringSubmatch(line); m != nil {
			c = call{name: m[2], file: m[3], args: m[4], begin: n}
			if rest, ok := strings.CutSuffix(c.args, unfinished); ok {
				c.args = strings.TrimRight(rest, " ")
				open[m[1]] = c
				continue
			}
		} else if m := resumed.FindStringSubmatch(line); m != nil {
			var ok bool
			if c, ok = open[m[1]]; !ok || c.name != m[2] {
				continue // another kind of call
			}
			delete(open, m[1])
			c.args += m[3]
		} else {
			continue // signals, exits, descriptors that strace could not name
		}
		m := result.FindStringSubmatch(c.args)
		if m == nil {
			return nil, fmt.Errorf("line %d of the trace has no result: %.200s", n+1, line)
		}
		if c.result, err = strconv.ParseInt(m[1], 10, 64); err != nil {
			return nil, fmt.Errorf("line %d of the trace: %w", n+1, err)
		}
		c.end = n
		t = append(t, c)
	}
}

var (
	guidHeader = regexp.MustCompile(`X-Github-Delivery: ([\w-]+)\\r\\n`)
	metaPage   = regexp.MustCompile(`, (?:0|` + strconv.Itoa(pageSize) + `)\) +=`)
)

// pageSize is the offset of bbolt's second meta page.
var pageSize = os.Getpagesize()

// prematureAnswers lists the answers to webhooks in a trace that were sent too early. Before each 200 the page with the
// delivery's GUID must be written to the store and synced, and then a meta page that makes it valid must be written and
// synced; for the first 200 of a GUID all of that must come after the end of the request. It also returns the number of
// answers.
func (t trace) prematureAnswers(db string) (answers int, wrong []string) {
	asked := map[string]string{} // by socket: the GUID in the last request
	read := map[string]int{}     // by socket: the time of the request's last part
	known := map[string]bool{}   // GUIDs that were answered
	for _, c := range t {
		switch {
		case c.name == "read" && c.result > 0 && strings.HasPrefix(c.file, "socket:"):
			if m := guidHeader.FindStringSubmatch(c.args); m != nil {
				asked[c.file] = m[1]
			}
			read[c.file] = c.end
		case c.name == "write" && strings.HasPrefix(c.args, `"HTTP/1.1 200 OK`) && asked[c.file] != "":
			guid := asked[c.file]
			since := read[c.file]
			for file, g := range asked { // of concurrent deliveries, the first one stores it
				if g == guid {
					since = min(since, read[file])
				}
			}
			if known[guid] {
				since = 0
			}
			delete(asked, c.file)
			known[guid] = true
			answers++
			if why := t.stored(db, guid, since, c.begin); why != "" {
				wrong = append(wrong, guid+": "+why)
			}
		}
	}
	return answers, wrong
}

// stored returns the step that is missing for a GUID to be durable between two moments, or "".
func (t trace) stored(db, guid string, since, until int) string {
	steps := []struct {
		missing string
		is      func(call) bool
	}{
		{"its page was not written before the answer", func(c call) bool { return c.name == "pwrite64" && strings.Contains(c.args, guid) }},
		{"its page was not synced before the answer", syncs},
		{"no meta page was written before the answer", func(c call) bool { return c.name == "pwrite64" && metaPage.MatchString(c.args) }},
		{"the meta page was not synced before the answer", syncs},
	}
	for _, step := range steps {
		i := slices.IndexFunc(t, func(c call) bool {
			return c.file == db && c.begin > since && c.end < until && c.result >= 0 && step.is(c)
		})
		if i < 0 {
			return step.missing
		}
		since = t[i].end
	}
	return ""
}

func syncs(c call) bool { return c.name == "fdatasync" || c.name == "fsync" }
