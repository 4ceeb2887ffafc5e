package vm

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// The keys under which VMs are stored. Values are JSON.
const (
	preVM       = "vm/"           // NAME: the Row
	keyRoster   = "vms"           // the roster: the VMs whose bills are open, and the newest intents
	preVMTask   = "vmbill/task/"  // TASK: the cost of the task's VMs that are gone
	preVMMonth  = "vmbill/month/" // MONTH (2006-01): the cost of VMs that are gone, by day
	keyVMImages = "vmimages"      // the images of disks whose bills are open
	keyVMTimes  = "vmtimes"       // how long recent VMs took to boot and to be imaged
)

func rowKey(name string) string      { return preVM + name }
func taskKey(k state.TaskKey) string { return preVMTask + k.String() }
func monthKey(at time.Time) string   { return preVMMonth + at.UTC().Format("2006-01") }
