package costs

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// stage is where a task's VM is.
type stage int

const (
	away     stage = iota // there is none; perhaps an image
	working               // ordered, booting or at work
	resting               // there, and nobody needs it
	sleeping              // its work is being put away
)

// actor is a task as it goes through a world.
type actor struct {
	world *world
	task  *Task

	stage   stage
	run     int // the run that goes on, or comes next
	vms     int // how many it has had
	name    string
	created time.Time
	image   string
	rest    int       // counts rests, so that a timer knows whether it is still meant
	wanted  time.Time // since when the next run has been due, zero if it is not
	over    bool      // the task has ended
	hours   int64     // that were started, of VMs that are gone
}

// takes is what something takes for the present run.
func (a *actor) takes(t Time, what string) time.Duration {
	return t.draw(a.world.setting.Seed, what, a.task.Name, a.run)
}

// want is when the next run is due: a person has acted, or a back-off is over.
func (a *actor) want() error {
	a.wanted = a.world.now
	switch a.stage {
	case away:
		return a.wake()
	case resting:
		a.stage = working
		a.rest++
		a.world.at(a.world.now.Add(a.takes(a.world.setting.Times.Thaw, "thaw")), a.start)
	}
	return nil // what is being put away is put away first
}

// wake gets a VM.
func (a *actor) wake() error {
	a.stage = working
	a.vms++
	a.name, a.created = fmt.Sprintf("%s-%d", a.task.Name, a.vms), a.world.now
	if err := a.world.create(a.name, a.image); err != nil {
		return err
	}
	times := a.world.setting.Times
	ready := a.takes(times.Boot, "boot")
	if a.run > 0 && a.world.policy.Keep == KeepArchive {
		ready += a.takes(times.Unpack, "unpack")
	}
	a.world.at(a.world.now.Add(ready), a.start)
	return nil
}

// start is when the agent begins.
func (a *actor) start() error {
	if err := a.dropImage(); err != nil { // what it held is on the VM
		return err
	}
	if a.run > 0 {
		a.world.waits = append(a.world.waits, a.world.now.Sub(a.wanted))
	}
	a.wanted = time.Time{}
	a.world.at(a.world.now.Add(time.Duration(a.task.Runs[a.run].Takes)), a.end)
	return nil
}

// end is when the agent is done.
func (a *actor) end() error {
	a.run++
	a.stage = resting
	if a.run < len(a.task.Runs) {
		a.world.at(a.world.now.Add(time.Duration(a.task.Runs[a.run].After)), a.want)
	} else {
		a.world.at(a.world.now.Add(time.Duration(a.task.End)), a.finish)
	}
	a.rest++
	rest := a.rest
	if at, sleeps := a.world.policy.sleepAt(a.created, a.world.now, a.world.setting); sleeps {
		a.world.at(at, func() error {
			if a.rest != rest || a.stage != resting {
				return nil
			}
			return a.sleep()
		})
	}
	return nil
}

// sleep puts the work away.
func (a *actor) sleep() error {
	a.stage = sleeping
	takes := a.takes(a.world.setting.Times.Pack, "pack")
	if a.world.policy.Keep == KeepSnapshot {
		takes = a.takes(a.world.setting.Times.Image, "image")
	}
	a.world.at(a.world.now.Add(takes), a.asleep)
	return nil
}

// asleep is when the work is away: the VM goes.
func (a *actor) asleep() (err error) {
	if a.world.policy.Keep == KeepSnapshot {
		if a.image, err = a.world.cloud.Image(a.name); err != nil {
			return fmt.Errorf("make an image of VM %s: %w", a.name, err)
		}
	}
	if err := a.leave(); err != nil {
		return err
	}
	a.stage = away
	switch {
	case a.over:
		return a.dropImage()
	case !a.wanted.IsZero():
		return a.wake()
	}
	return nil
}

// finish is when the task ends: nothing of it is kept.
func (a *actor) finish() error {
	a.over = true
	if a.stage == resting {
		a.rest++
		a.stage = away
		if err := a.leave(); err != nil {
			return err
		}
	}
	if a.stage == away {
		return a.dropImage()
	}
	return nil
}

// leave deletes the VM.
func (a *actor) leave() error {
	a.hours += vm.SpansStarted(a.created, a.world.setting.Period, a.world.now)
	a.world.taskHours = max(a.world.taskHours, a.hours)
	return a.world.remove(a.name)
}

func (a *actor) dropImage() error {
	if a.image == "" {
		return nil
	}
	image := a.image
	a.image = ""
	if err := a.world.cloud.DeleteImage(image); err != nil {
		return fmt.Errorf("delete image %s: %w", image, err)
	}
	return nil
}
