// Package realcli runs complete tasks with the real agent programs, in the versions of internal/agent/programs: a real
// server, runner and tether, a simulated GitHub, and a scripted model behind the gateway. It needs no
// account and calls no external service. The agents run in sandboxes without a network, and confirm
// that themselves.
//
// `make clis` installs the programs. Without them, or without bubblewrap, and unless the environment
// has ERRAND_TEST_FULL=1, the tests are skipped. Start reading at TestHeavyLife.
package realcli
