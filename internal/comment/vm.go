package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// vmFact returns the state of the task's VM for the status comment, or "" if it never had one. The task's page has its name and
// isolation.
func vmFact(t *state.Task, v View) string {
	s := ""
	switch n := len(t.VMs); {
	case t.VM != nil && t.HasIdleVM():
		s = words.Rest(t.VM, v.Now)
	case t.VM != nil:
		s = "in use"
	case t.Suspended != nil && !t.Ended() && t.WorkToRestore() != nil:
		s = "suspended since " + v.clock(t.Suspended.At) + ", " + words.Asleep(t.Suspended)
	case n > 0:
		s = "none; the last one ended because " + markdown.Line(words.VMEnd(t.VMs[n-1].EndReason), 80)
	default:
		return ""
	}
	if u := vmUse(t, v); u != "" {
		s += "; " + u
	}
	return s
}

// vmUse returns the paid time of the task's VMs, and their cost if comments may name it; empty if no VM costs money.
func vmUse(t *state.Task, v View) string {
	switch u := t.VMUse(v.Now); {
	case u.VMs == 0:
		return ""
	case showsMoney(t):
		return words.VMUse(u)
	default:
		return fmt.Sprintf("%s in %s", words.Span(u.Hours), words.Many(u.VMs, "VM"))
	}
}

// maxVMRows is the number of VMs that the last comment lists.
const maxVMRows = 12

// vmTotals returns a table with the cost of each paid VM and the total. It is empty if no VM costs money.
func vmTotals(t *state.Task, v View) string {
	use, shown := vmUse(t, v), showsMoney(t)
	if use == "" {
		return ""
	}
	vms := t.VMs
	if t.VM != nil {
		vms = append(vms[:len(vms):len(vms)], *t.VM)
	}
	var b strings.Builder
	b.WriteString("VMs: " + use + "\n\n")
	line := func(cost string, cells ...string) {
		if shown {
			cells = append(cells, cost)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line("Cost", "From", "Paid for", "Ended because")
	line("---", "---", "---", "---")
	rows := 0
	for _, vm := range vms {
		if vm.Paid <= 0 {
			continue
		}
		if rows++; rows > maxVMRows {
			continue
		}
		why := words.VMEnd(vm.EndReason)
		if vm.EndReason == "" { // the current one, which is deleted with its task
			why = "its task has ended; it is being deleted"
		}
		line(words.Cash(vm.Cost(v.Now), vm.Currency), v.clock(vm.CreatedAt), words.Span(vm.Hours(v.Now)),
			markdown.Cell(markdown.Line(why, 80)))
	}
	if more := rows - maxVMRows; more > 0 {
		line("", fmt.Sprintf("*%s more*", words.Many(more, "VM")), "", "")
	}
	return strings.TrimRight(b.String(), "\n")
}

// vm renders the result of suspending the work. Text is the reason.
func (p post) vm() string {
	continuation := "Published work, the plans and the conversation remain; the next run starts from them."
	switch p.Reason {
	case state.VMExpired:
		what := "archive"
		if len(p.Items) > 0 && p.Items[0] == string(settings.SleepSnapshot) {
			what = "snapshot"
		}
		return markdown.Paragraphs("The saved workspace expired, and its "+what+" was deleted.", continuation)
	case state.VMNotRestored:
		return markdown.Paragraphs("The saved work could not be restored to a new VM: "+markdown.Sentence(p.Text)+" Unpublished work is lost.", continuation, p.lastSaved())
	}
	return markdown.Paragraphs("The VM of this task ended before its work was saved: "+markdown.Sentence(p.Text), continuation, p.lastSaved())
}

// lastSaved returns the time and reason of the last save, if any.
func (p post) lastSaved() string {
	n := len(p.t.Saved)
	if n == 0 {
		return ""
	}
	last := p.t.Saved[n-1]
	return fmt.Sprintf("The newest commits that were saved on errand's host, where only the operator can get them, are from %s: %s", p.v.clock(last.At), markdown.Sentence(last.Reason))
}
