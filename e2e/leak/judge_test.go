package leak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state/vm"
)

// The judge compares errand's actions with the true state of the cloud when a request arrives and when an event of a
// row is stored. A complaint begins with its subject: id, bill, loss, image, delete or greet.

var (
	oneOfThem = regexp.MustCompile(`^/v1/(servers|images)/([0-9]+)$`)
	onServer  = regexp.MustCompile(`^/v1/servers/([0-9]+)/actions/([a-z_]+)$`)
)

// rumors are the false answers about one server or image since the last true one.
type rumors struct {
	first, last time.Time
	count       int
	missing     bool // one of them denied its existence
}

// credible reports whether errand may accept a loss: at least two answers reported it, that far apart.
func (r rumors) credible(apart time.Duration) bool {
	return r.count > 1 && r.last.Sub(r.first) >= apart
}

// Times between two answers after which errand may accept a loss, as promised in docs/hetzner.md. A deletion waits
// less, because a wrong conclusion about its end loses no work.
const (
	apartForWork   = time.Minute
	apartForDelete = time.Second
)

// complain records a wrong action of errand.
func (w *world) complain(about, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongs = append(w.wrongs, about+": "+fmt.Sprintf(format, args...))
}

func (w *world) falseAnswersAbout(key string) rumors {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rumors[key]
}

// object finds a server or an image by its id.
func (w *world) object(kind, id string) (simhetzner.Object, bool) {
	for _, o := range w.sim.Objects(kind) {
		if fmt.Sprint(o.ID) == id {
			return o, true
		}
	}
	return simhetzner.Object{}, false
}

// heard records false answers. It is called with the answer that errand receives, and the status of the object before
// the request; there reports whether the object existed.
func (w *world) heard(r *http.Request, code int, body []byte, before simhetzner.Object, there bool) {
	one := oneOfThem.FindStringSubmatch(r.URL.Path)
	if one == nil {
		return
	}
	key := one[1] + "/" + one[2]
	var answer struct {
		Server, Image, Action struct{ Status string }
	}
	_ = json.Unmarshal(body, &answer)
	says := answer.Server.Status + answer.Image.Status // an answer about a server has no image
	truth := there == (code != http.StatusNotFound)
	switch {
	case r.Method == http.MethodGet && code == http.StatusOK:
		truth = truth && says == before.Status
	case r.Method == http.MethodDelete && code == http.StatusOK: // the promise may not be kept
		truth = false
	case code != http.StatusNotFound:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if truth {
		delete(w.rumors, key)
		return
	}
	now, was := w.clock.Now(), w.rumors[key]
	if was.count == 0 {
		was.first = now
	}
	was.last, was.count, was.missing = now, was.count+1, was.missing || code == http.StatusNotFound
	w.rumors[key] = was
}

// judgeRequest checks a request before it takes effect.
func (w *world) judgeRequest(r *http.Request) {
	if one := oneOfThem.FindStringSubmatch(r.URL.Path); one != nil && r.Method == http.MethodDelete {
		switch o, there := w.object(strings.TrimSuffix(one[1], "s"), one[2]); {
		case !there:
		case o.Kind == "image":
			w.judgeImageDeletion(o)
		default:
			w.judgeDeletion(o)
		}
	}
	if act := onServer.FindStringSubmatch(r.URL.Path); act != nil && act[2] == "create_image" {
		if o, there := w.object("server", act[1]); there && o.Status != "off" && !w.falseAnswersAbout("servers/"+act[1]).credible(apartForDelete) {
			w.complain("image", "an image of server %s is created while the server is %s", act[1], o.Status)
		}
	}
}

func (w *world) judgeImageDeletion(img simhetzner.Object) {
	for key, task := range w.store.tasks {
		if a := task.Suspended; a != nil && a.Ref == fmt.Sprint(img.ID) && !w.letting[a.Ref] {
			w.complain("delete", "image %s is deleted, but task %s is suspended in it", a.Ref, key)
		}
	}
}

// judgeDeletion complains if a server with the only copy of work is deleted.
func (w *world) judgeDeletion(server simhetzner.Object) {
	id := fmt.Sprint(server.ID)
	for key, task := range w.store.tasks {
		if task.VM == nil || w.letting[task.VM.Name] {
			continue
		}
		row, err := w.store.VMs.Get(context.Background(), task.VM.Name)
		switch {
		case err != nil || row.ID != id && w.ran[task.VM.Name] != id:
		case row.Phase == vm.Asleep: // as an image, and the task is about to record it
			if img, there := w.object("image", row.Snapshot); !there || img.Status != "available" {
				w.complain("delete", "server %s is deleted, but its image %s is %q", id, row.Snapshot, img.Status)
			}
		case row.Phase == vm.Failed && w.falseAnswersAbout("servers/"+id).credible(apartForWork):
		default:
			w.complain("delete", "server %s is deleted, but task %s uses it", id, key)
		}
	}
	for key, task := range w.store.tasks { // released by suspension: the image must exist first
		if a := task.Suspended; a != nil && w.ran[a.VM] == id && !w.letting[a.Ref] {
			if img, there := w.object("image", a.Ref); (!there || img.Status != "available") && !w.falseAnswersAbout("images/"+a.Ref).credible(apartForWork) {
				w.complain("delete", "server %s is deleted, but the image of suspended task %s, %s, is %q", id, key, a.Ref, img.Status)
			}
		}
	}
}

// judgeEvent checks a row after an event.
func (w *world) judgeEvent(before, after vm.Row, e vm.Event) {
	if before.ID != "" && before.ID != after.ID {
		w.complain("id", "row %s changed from server %s to %s", after.Name, before.ID, after.ID)
	}
	server, there := w.object("server", after.ID)
	said := w.falseAnswersAbout("servers/" + after.ID)
	early := server.Status == "deleting" && said.missing // marked as gone while it is being deleted
	if before.EndedAt.IsZero() && !after.EndedAt.IsZero() && there && after.Successor == "" && !early && !said.credible(apartForDelete) {
		w.complain("bill", "row %s (%s) is closed, but its server %s is %s", after.Name, after.Phase, after.ID, server.Status)
	}
	switch alive := there && server.Status != "off" && server.Status != "deleting"; {
	case e.Kind == vm.Fail && alive && (before.Phase.Usable() || e.EndReason == fleet.ReasonVanished) && !said.credible(apartForWork):
		w.complain("loss", "row %s (%s) fails (%s %s), but its server %s is %s", after.Name, before.Phase, e.EndReason, e.Detail, after.ID, server.Status)
	case e.Kind == vm.Imaged:
		w.judgeImage(after)
	}
}

// judgeImage complains if a suspended VM's image was not made of its disk after its last work.
func (w *world) judgeImage(row vm.Row) {
	img, there := w.object("image", row.Snapshot)
	switch worked := w.worked[row.Name]; {
	case !there || img.Status != "available":
		w.complain("image", "the image of suspended row %s, %s, is %q", row.Name, row.Snapshot, img.Status)
	case img.Created.Before(worked):
		w.complain("image", "the image of suspended row %s, %s, is of %s, but its last work was at %s", row.Name, row.Snapshot, img.Created, worked)
	case fmt.Sprint(img.Server) != row.ID:
		w.complain("image", "the image of suspended row %s, %s, is of server %d, but its server was %s", row.Name, row.Snapshot, img.Server, row.ID)
	case img.Inconsistent:
		w.complain("image", "the image of suspended row %s, %s, may be unreadable", row.Name, row.Snapshot)
	}
}

// judgeLaunch complains if a run begins on another server than the row's, or than that of earlier runs.
func (w *world) judgeLaunch(vm fleet.VM) {
	row, err := w.store.VMs.Get(context.Background(), vm.Name)
	if err != nil || row.ID != vm.ID {
		w.complain("id", "VM %s is server %s, but its row has %s (%v)", vm.Name, vm.ID, row.ID, err)
	}
	if old, ok := w.ran[vm.Name]; ok && old != vm.ID {
		w.complain("id", "VM %s changed from server %s to %s", vm.Name, old, vm.ID)
	}
	w.ran[vm.Name] = vm.ID
}

// judgeLostImage complains if a suspended task's image is reported as gone although it exists.
func (w *world) judgeLostImage(ref string, err error) {
	img, there := w.object("image", ref)
	if isGone(err) && there && img.Status == "available" && !w.falseAnswersAbout("images/"+ref).credible(apartForWork) {
		w.complain("loss", "image %s is reported as gone (%v), but is %s", ref, err, img.Status)
	}
}

// judgeGreeting complains if a row's first contact is with another server than the row's.
func (w *world) judgeGreeting(row vm.Row, e remote.Endpoint) {
	if o, there := w.object("server", row.ID); row.ID != "" && there && e.Address != o.IP+":22" {
		w.complain("greet", "row %s has server %s at %s, but the first contact is with %s", row.Name, row.ID, o.IP, e.Address)
	}
}
