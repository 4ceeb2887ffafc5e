package costs

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// stage is the state of a task's VM.
type stage int

const (
	away     stage = iota // no VM; perhaps an image
	working               // ordered, booting or in use
	resting               // running but not needed
	sleeping              // its work is being saved
)

// actor is a task during a simulation.
type actor struct {
	world *world
	task  *Task

	stage   stage
	run     int // the current or next run
	vms     int // number of VMs so far
	name    string
	created time.Time
	image   string
	rest    int       // counts rests, so that a timer can detect that it is obsolete
	wanted  time.Time // since when the next run has been due, zero if it is not
	over    bool      // the task has ended
	hours   int64     // started hours of deleted VMs
}

// durationOf returns the duration of an operation in the current run.
func (a *actor) durationOf(t Time, what string) time.Duration {
	return t.random(a.world.setting.Seed, what, a.task.Name, a.run)
}

// startNextRun starts the next run: a person has acted, or a back-off is over.
func (a *actor) startNextRun() error {
	a.wanted = a.world.now
	switch a.stage {
	case away:
		return a.createVM()
	case resting:
		a.stage = working
		a.rest++
		a.world.at(a.world.now.Add(a.durationOf(a.world.setting.Times.Thaw, "thaw")), a.start)
	}
	return nil // saving the work must finish first
}

// createVM creates a VM.
func (a *actor) createVM() error {
	a.stage = working
	a.vms++
	a.name, a.created = fmt.Sprintf("%s-%d", a.task.Name, a.vms), a.world.now
	if err := a.world.create(a.name, a.image); err != nil {
		return err
	}
	times := a.world.setting.Times
	ready := a.durationOf(times.Boot, "boot")
	if a.run > 0 && a.world.policy.Keep == KeepArchive {
		ready += a.durationOf(times.Unpack, "unpack")
	}
	a.world.at(a.world.now.Add(ready), a.start)
	return nil
}

// start is called when the agent starts.
func (a *actor) start() error {
	if err := a.dropImage(); err != nil { // the VM has its content
		return err
	}
	if a.run > 0 {
		a.world.waits = append(a.world.waits, a.world.now.Sub(a.wanted))
	}
	a.wanted = time.Time{}
	a.world.at(a.world.now.Add(time.Duration(a.task.Runs[a.run].Takes)), a.end)
	return nil
}

// end is called when the agent is done.
func (a *actor) end() error {
	a.run++
	a.stage = resting
	if a.run < len(a.task.Runs) {
		a.world.at(a.world.now.Add(time.Duration(a.task.Runs[a.run].After)), a.startNextRun)
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

// sleep saves the work.
func (a *actor) sleep() error {
	a.stage = sleeping
	takes := a.durationOf(a.world.setting.Times.Pack, "pack")
	if a.world.policy.Keep == KeepSnapshot {
		takes = a.durationOf(a.world.setting.Times.Image, "image")
	}
	a.world.at(a.world.now.Add(takes), a.asleep)
	return nil
}

// asleep is called when the work is saved: it deletes the VM.
func (a *actor) asleep() (err error) {
	if a.world.policy.Keep == KeepSnapshot {
		if a.image, err = a.world.cloud.Image(a.name); err != nil {
			return fmt.Errorf("create an image of VM %s: %w", a.name, err)
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
		return a.createVM()
	}
	return nil
}

// finish is called when the task ends: it deletes everything.
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
