// Package realcli has errand drive the real agent programs, at the versions of package.json, through
// whole lives of a task: a real server, runner and tether, a stand-in for GitHub, and a scripted model
// behind the gateway. No account is needed and nothing outside is called; the agents work in boxes that
// have no network at all, and say so themselves.
//
// `make clis` installs the programs. Without them, or without bubblewrap, and unless the environment
// has ERRAND_TEST_FULL=1, the tests are skipped. Start reading at TestHeavyLife.
package realcli
