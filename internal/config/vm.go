package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state/settings"
)

// RepoVM sets requirements for the repository's VMs.
type RepoVM struct {
	// MinVCPU is the minimum number of processors.
	MinVCPU int `yaml:"min_vcpu"`
	// MinMemory is the minimum memory in GB.
	MinMemory int `yaml:"min_memory"`
	// MinDisk is the minimum disk size in GB.
	MinDisk int `yaml:"min_disk"`
	// Sleep is how a task is suspended: archive (its changes, the agent's session and the folders of `keep` are
	// archived) or snapshot (the whole disk, for state that cannot be saved otherwise; slower).
	Sleep settings.SleepMode `yaml:"sleep"`
}

// The limits on requirements for VMs.
const (
	maxVCPU = 256
	maxGB   = 10_000
	maxKept = 20
	// maxGuidance is the maximum number of instruction files for agents.
	maxGuidance = 10
	mbOfAGig    = 1024
)

// settings returns the repository's requirements over the operator's defaults.
func (v RepoVM) settings(defaults settings.VM) settings.VM {
	s := settings.VM{
		MinVCPU: max(v.MinVCPU, defaults.MinVCPU), MinMemoryMB: max(v.MinMemory*mbOfAGig, defaults.MinMemoryMB),
		MinDiskGB: max(v.MinDisk, defaults.MinDiskGB), Sleep: defaults.Sleep,
	}
	if v.Sleep != "" {
		s.Sleep = v.Sleep
	}
	return s
}

func (v RepoVM) problems(r *report) {
	between := func(key string, n, most int) {
		r.unless(n >= 0 && n <= most, key, "write a number from 0 to %d", most)
	}
	between("vm.min_vcpu", v.MinVCPU, maxVCPU)
	between("vm.min_memory", v.MinMemory, maxGB)
	between("vm.min_disk", v.MinDisk, maxGB)
	sleepProblem(r, "vm.sleep", v.Sleep)
}

func sleepProblem(r *report, key string, m settings.SleepMode) {
	r.unless(slices.Contains([]settings.SleepMode{"", settings.SleepArchive, settings.SleepSnapshot}, m), key, "%q: write archive or snapshot", cut(string(m)))
}

func guidanceProblems(r *report, key string, list []string) {
	r.unless(len(list) <= maxGuidance, key, "%d files are too many; write at most %d", len(list), maxGuidance)
	for i, p := range list {
		plain := p != "." && p == path.Clean(p) && filepath.IsLocal(p) && len(p) <= 200 && !strings.ContainsAny(p, ":\\\x00\n")
		r.unless(plain, fmt.Sprintf("%s[%d]", key, i), "%q: write a file of the repository, such as AGENTS.md", cut(p))
	}
}

func keepProblems(r *report, list []string) {
	r.unless(len(list) <= maxKept, "keep", "%d folders are too many; write at most %d", len(list), maxKept)
	for i, p := range list {
		rest := strings.TrimPrefix(p, "~/")
		plain := rest != "." && rest == path.Clean(rest) && filepath.IsLocal(rest) && !strings.ContainsAny(p, "\x00\n")
		r.unless(plain, fmt.Sprintf("keep[%d]", i), "%q: write a folder of the checkout, or ~/ and a folder of the home directory", cut(p))
	}
}
