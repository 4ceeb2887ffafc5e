package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	hookSecret  = "bench-secret"
	connections = 32
	payloadSize = 12 << 10
)

// outcome is the result of sending webhooks for some time. All of them were answered 200.
type outcome struct {
	Answered  int
	PerSecond float64
	P50, P99  time.Duration
}

// hookLoad is the client process of the webhook benchmark, for where wrk is not installed. It sends webhooks to addr
// over 32 connections, each with one webhook at a time, for the given time or until it has sent limit of them, and
// prints the outcome as JSON. It uses as little CPU as it can, because the server runs on the same cores.
func hookLoad(addr string, within time.Duration, limit int) error {
	began := time.Now()
	var sent atomic.Int64
	next := func() bool { return sent.Add(1) <= int64(limit) && time.Since(began) < within }
	var mu sync.Mutex
	var took []time.Duration
	var errs error
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			own, err := sendWebhooks(addr, within+30*time.Second, next)
			mu.Lock()
			defer mu.Unlock()
			took, errs = append(took, own...), errors.Join(errs, err)
		})
	}
	group.Wait()
	seconds := time.Since(began).Seconds()
	if errs != nil {
		return errs
	}
	slices.Sort(took)
	n := len(took)
	return json.NewEncoder(os.Stdout).Encode(outcome{Answered: n, PerSecond: float64(n) / seconds, P50: took[n/2], P99: took[n*99/100]})
}

// sendWebhooks sends webhooks over one connection while next returns true, and returns the duration of each.
func sendWebhooks(addr string, timeout time.Duration, next func() bool) (took []time.Duration, err error) {
	var d net.Dialer
	conn, err := d.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	const example = "00000000-0000-4000-8000-000000000000"
	request := webhookRequest(addr, example)
	guid := request[bytes.Index(request, []byte(example)):][:len(example)]
	in := bufio.NewReader(conn)
	for next() {
		begun := time.Now()
		copy(guid, fmt.Sprintf("%08x-%04x-4000-8000-%012x", rand.Uint32(), rand.Uint32()>>16, rand.Uint64()>>16))
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if err := readAnswer(in); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// readAnswer reads an answer and returns an error unless its status is 200.
func readAnswer(in *bufio.Reader) error {
	status, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("got answer %s", bytes.TrimSpace(status))
	}
	length := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, found := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(": "))
		if !found {
			break
		}
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("the answer has no Content-Length")
	}
	_, err = in.Discard(length)
	return err
}

// webhookRequest returns a whole request as it goes over the wire.
func webhookRequest(addr, guid string) []byte {
	body := payload()
	head := fmt.Sprintf("POST /api/github/hook HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"X-GitHub-Event: issue_comment\r\nX-GitHub-Delivery: %s\r\nX-Hub-Signature-256: %s\r\n\r\n", addr, len(body), guid, signature(body))
	return append([]byte(head), body...)
}

// signature returns the value of the signature's header.
func signature(body []byte) string {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// payload is a webhook of the usual size, with as many URLs as GitHub's have.
func payload() []byte {
	repo := map[string]any{"id": 1001, "name": "slug", "full_name": "acme/slug", "default_branch": "main"}
	for _, name := range []string{"forks", "keys", "collaborators", "teams", "hooks", "issue_events", "events", "assignees", "branches", "tags", "blobs",
		"git_tags", "git_refs", "trees", "statuses", "languages", "stargazers", "contributors", "subscribers", "subscription", "commits", "git_commits",
		"comments", "issue_comment", "contents", "compare", "merges", "archive", "downloads", "issues", "pulls", "milestones", "notifications", "labels", "releases", "deployments"} {
		repo[name+"_url"] = "https://api.github.com/repos/acme/slug/" + name + "{/number}"
	}
	words := bytes.Buffer{}
	for n := 0; words.Len() < payloadSize*2/5; n++ {
		fmt.Fprintf(&words, "Line %d: the slug of %x ends in %d hyphens.\n", n, n*2654435761, n%7)
	}
	data, err := json.Marshal(map[string]any{
		"action": "created", "repository": repo, "organization": repo, "sender": map[string]any{"login": "ada", "id": 7, "type": "User"},
		"installation": map[string]any{"id": 12}, "issue": map[string]any{"number": 1, "title": "A bug", "body": words.String()},
		"comment": map[string]any{"id": 5, "body": "Please.", "user": map[string]any{"login": "ada", "id": 7}},
	})
	if err != nil {
		panic(err) // plain values always encode
	}
	return data
}
