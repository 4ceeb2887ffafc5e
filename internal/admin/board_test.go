package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestBoard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	body := w.page("/status")
	want(t, body, "No open tasks", "errand v1.2.3")
	w.launch(1)
	w.trigger(2, "A <script>alert(1)</script> title")
	body = w.page("/status")
	want(t, body, "Prices are rounded twice", `href="/tasks/acme/shop/1"`, "Writing the preliminary plan", "The agent is at work.", "VM bwrap",
		"A &lt;script&gt;alert(1)&lt;/script&gt; title", "Getting ready", "$0.00 of $10.00")
	wantNot(t, body, "<script>alert", "No open tasks")
	w.apply(2, event.Event{By: writer, Via: "assigned", Payload: event.Untriggered{}})
	body = w.page("/status")
	want(t, body, `<span class="badge calm">canceled</span>`, "the assignment was removed by @ada")
	if open, ended, _ := strings.Cut(body, `id="ended"`); strings.Contains(open, "alert(1)") || !strings.Contains(ended, "alert(1)") {
		t.Errorf("the canceled task is missing in the list of ended tasks:\n%s", body)
	}
}

// TestPagesAreAccessible checks that pages are accessible and work without scripts.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	w := &world{t: t, dir: folder(t.TempDir())}
	w.write("7-1-4").exit()
	url := serve(t, admin.Config{Store: sample(), Transcripts: w.dir, Open: true, Version: "v1", Now: func() time.Time { return noon },
		VMs: vmWorld(t).store.VMs, Alarms: func() []admin.Alarm { return []admin.Alarm{{Kind: "volume", ID: "<i>", Reason: "<i>"}} },
		Describe: func(context.Context) (admin.Source, error) {
			return admin.Source{Kind: "plain", Isolation: "none", Notes: []string{"install <bwrap>"}, Candidates: []admin.Candidate{{Type: "<i>", Sold: true, Available: true}}}, nil
		}})
	tag := regexp.MustCompile(`<(h1|main|html lang="en"|meta name="viewport")[ >]`)
	ids := regexp.MustCompile(` id="([^"]*)"`)
	outside := regexp.MustCompile(`(src|<link[^>]*href)="(https?:)?//`)
	for _, path := range []string{"/status", "/tasks/acme/shop/1", "/tasks/acme/shop/3", "/tasks/acme/shop/1/runs/4", "/vms", "/nothing"} {
		_, body := fetch(t, url+path, map[string]string{"Accept": "text/html"})
		got := map[string]int{}
		for _, m := range tag.FindAllStringSubmatch(body, -1) {
			got[m[1]]++
		}
		if diff := cmp.Diff(map[string]int{"h1": 1, "main": 1, `html lang="en"`: 1, `meta name="viewport"`: 1}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		seen := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("%s: duplicate ID %s", path, m[1])
			}
			seen[m[1]] = true
		}
		if m := outside.FindString(body); m != "" {
			t.Errorf("%s: %s", path, m)
		}
		wantNot(t, body, "<tag>", "<event>", "<i>", "<unexpected>", "<bwrap>", "javascript:", " style=", " onclick=", "ZgotmplZ\" class")
	}
}

func TestStatusJSON(t *testing.T) {
	t.Parallel()
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Version: "v1", Now: func() time.Time { return noon }})
	status, body := fetch(t, url+"/status.json", nil)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	var got struct {
		Version string
		At      time.Time
		Phases  []struct {
			Phase string
			Tasks int
		}
		Tasks, Ended []struct {
			Task, Repo, Title, Page, URL, Phase, Next string
			Issue                                     int
			Run                                       *struct {
				ID    string
				Turns int
			}
			Money       struct{ Spent, Cap float64 }
			Waiting     *struct{ Kind, Detail string }
			PullRequest *struct{ Number int } `json:"pull_request"`
		}
		Poison []struct{ GUID, Error string }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1" || !got.At.Equal(noon) || len(got.Phases) != len(state.Phases()) || len(got.Tasks) != 6 || len(got.Ended) != 2 || len(got.Poison) != 1 {
		t.Fatalf("got %s", body)
	}
	first := got.Tasks[0] // in the order of a task's life
	if first.Phase != "preliminary_planning" || first.Task != "7/2" || first.Waiting == nil || first.Waiting.Kind != "vm" || first.Money.Cap != 10 {
		t.Errorf("first task %+v", first)
	}
	if third := got.Tasks[2]; third.Run == nil || third.Run.ID != "7-1-4" || third.Page != "/tasks/acme/shop/1" || third.URL != "https://git.example/acme/shop/issues/1" {
		t.Errorf("third task %+v", third)
	}
	if e := got.Ended[0]; e.PullRequest == nil || e.PullRequest.Number != 29 {
		t.Errorf("got ended %+v", e)
	}
}

func TestBrokenStore(t *testing.T) {
	t.Parallel()
	m := sample()
	m.broken = true
	url := serve(t, admin.Config{Store: m, Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	for _, path := range []string{"/status", "/status.json", "/tasks/acme/shop/1", "/tasks/acme/shop/1/runs/1"} {
		status, body := fetch(t, url+path, nil)
		if status != http.StatusInternalServerError {
			t.Errorf("%s: status %d", path, status)
		}
		wantNot(t, body, errBroken.Error())
	}
}
