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

// The judge holds what errand does against what is true in the cloud at that moment: when a request arrives and when an
// event of a row is stored. A complaint begins with what it is about: id, bill, loss, image, delete or greet.

var (
	oneOfThem = regexp.MustCompile(`^/v1/(servers|images)/([0-9]+)$`)
	onServer  = regexp.MustCompile(`^/v1/servers/([0-9]+)/actions/([a-z_]+)$`)
)

// rumors are the false answers about one server or image that were heard since the last true one.
type rumors struct {
	first, last time.Time
	count       int
	missing     bool // one of them was that there is none
}

// credible reports whether a loss may be believed: at least two answers said so, that far apart.
func (r rumors) credible(apart time.Duration) bool {
	return r.count > 1 && r.last.Sub(r.first) >= apart
}

// Times between two answers after which a loss may be believed, as promised in docs/hetzner.md. Whoever deletes a
// server does not lose work if it is wrong about the end, and waits less.
const (
	apartForWork   = time.Minute
	apartForDelete = time.Second
)

// wrong notes that errand did what it should not have done.
func (w *world) wrong(about, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongs = append(w.wrongs, about+": "+fmt.Sprintf(format, args...))
}

func (w *world) rumorsAbout(key string) rumors {
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

// heard keeps account of false answers. It is called with the answer that errand hears, and the status that the object
// had before the request; there says whether there was one.
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
	says := answer.Server.Status + answer.Image.Status // a server's answer has no image beside the server
	truth := there == (code != http.StatusNotFound)
	switch {
	case r.Method == http.MethodGet && code == http.StatusOK:
		truth = truth && says == before.Status
	case r.Method == http.MethodDelete && code == http.StatusOK: // it is a promise that may not be kept
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

// judgeRequest looks at a request before it takes effect.
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
		if o, there := w.object("server", act[1]); there && o.Status != "off" && !w.rumorsAbout("servers/"+act[1]).credible(apartForDelete) {
			w.wrong("image", "server %s is imaged while it is %s", act[1], o.Status)
		}
	}
}

func (w *world) judgeImageDeletion(img simhetzner.Object) {
	for key, task := range w.store.tasks {
		if a := task.Asleep; a != nil && a.Ref == fmt.Sprint(img.ID) && !w.letting[a.Ref] {
			w.wrong("delete", "image %s is deleted, and task %s sleeps as it", a.Ref, key)
		}
	}
}

// judgeDeletion complains if a server goes on which there is work that is nowhere else.
func (w *world) judgeDeletion(server simhetzner.Object) {
	id := fmt.Sprint(server.ID)
	for key, task := range w.store.tasks {
		if task.VM == nil || w.letting[task.VM.Name] {
			continue
		}
		row, err := w.store.VMs.Get(context.Background(), task.VM.Name)
		switch {
		case err != nil || row.ID != id && w.ran[task.VM.Name] != id:
		case row.Phase == vm.Asleep: // as an image, and the task is about to say so
			if img, there := w.object("image", row.Snapshot); !there || img.Status != "available" {
				w.wrong("delete", "server %s is deleted, and image %s of it is %q", id, row.Snapshot, img.Status)
			}
		case row.Phase == vm.Failed && w.rumorsAbout("servers/"+id).credible(apartForWork):
		default:
			w.wrong("delete", "server %s is deleted, and task %s has it", id, key)
		}
	}
	for key, task := range w.store.tasks { // let go to sleep: the image has to be there first
		if a := task.Asleep; a != nil && w.ran[a.VM] == id && !w.letting[a.Ref] {
			if img, there := w.object("image", a.Ref); (!there || img.Status != "available") && !w.rumorsAbout("images/"+a.Ref).credible(apartForWork) {
				w.wrong("delete", "server %s is deleted, and task %s sleeps as image %s, which is %q", id, key, a.Ref, img.Status)
			}
		}
	}
}

// judgeEvent looks at a row that an event has changed.
func (w *world) judgeEvent(before, after vm.Row, e vm.Event) {
	if before.ID != "" && before.ID != after.ID {
		w.wrong("id", "row %s had server %s and has %s", after.Name, before.ID, after.ID)
	}
	server, there := w.object("server", after.ID)
	said := w.rumorsAbout("servers/" + after.ID)
	early := server.Status == "deleting" && said.missing // it is said to be gone while it goes
	if before.EndedAt.IsZero() && !after.EndedAt.IsZero() && there && after.Heir == "" && !early && !said.credible(apartForDelete) {
		w.wrong("bill", "row %s (%s) is closed, and its server %s is %s", after.Name, after.Phase, after.ID, server.Status)
	}
	switch alive := there && server.Status != "off" && server.Status != "deleting"; {
	case e.Kind == vm.Fail && alive && (before.Phase.Usable() || e.Why == string(fleet.ReasonVanished)) && !said.credible(apartForWork):
		w.wrong("loss", "row %s (%s) fails (%s %s), and its server %s is %s", after.Name, before.Phase, e.Why, e.Detail, after.ID, server.Status)
	case e.Kind == vm.Imaged:
		w.judgeImage(after)
	}
}

// judgeImage complains if the image as which a VM sleeps is not that of its disk after its last work.
func (w *world) judgeImage(row vm.Row) {
	img, there := w.object("image", row.Snapshot)
	switch worked := w.worked[row.Name]; {
	case !there || img.Status != "available":
		w.wrong("image", "row %s sleeps as image %s, which is %q", row.Name, row.Snapshot, img.Status)
	case img.Created.Before(worked):
		w.wrong("image", "row %s sleeps as image %s of %s; it worked at %s", row.Name, row.Snapshot, img.Created, worked)
	case fmt.Sprint(img.Server) != row.ID:
		w.wrong("image", "row %s sleeps as image %s of server %d; it had server %s", row.Name, row.Snapshot, img.Server, row.ID)
	case img.Inconsistent:
		w.wrong("image", "row %s sleeps as image %s, which may not be readable", row.Name, row.Snapshot)
	}
}

// judgeLaunch complains if a run begins on another server than the one that the row has, or than the runs before it.
func (w *world) judgeLaunch(vm fleet.VM) {
	row, err := w.store.VMs.Get(context.Background(), vm.Name)
	if err != nil || row.ID != vm.ID {
		w.wrong("id", "VM %s is server %s, and its row has %s (%v)", vm.Name, vm.ID, row.ID, err)
	}
	if old, ok := w.ran[vm.Name]; ok && old != vm.ID {
		w.wrong("id", "VM %s was server %s and is %s", vm.Name, old, vm.ID)
	}
	w.ran[vm.Name] = vm.ID
}

// judgeLostImage complains if a task is told that the image as which it sleeps is gone, and it is not.
func (w *world) judgeLostImage(ref string, err error) {
	img, there := w.object("image", ref)
	if isGone(err) && there && img.Status == "available" && !w.rumorsAbout("images/"+ref).credible(apartForWork) {
		w.wrong("loss", "image %s is called gone (%v), and is %s", ref, err, img.Status)
	}
}

// judgeGreeting complains if a row's first contact is with another server than its own.
func (w *world) judgeGreeting(row vm.Row, e remote.Endpoint) {
	if o, there := w.object("server", row.ID); row.ID != "" && there && e.Address != o.IP+":22" {
		w.wrong("greet", "row %s has server %s at %s, and %s is greeted", row.Name, row.ID, o.IP, e.Address)
	}
}
