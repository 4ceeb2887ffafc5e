// Package e2e tests errand's promises as stories: each file in testdata/stories is one promise, tested against
// the whole server with simulators of GitHub, the model and the agent, and with real git, SSH, HTTP and
// processes.
//
// A story is a txtar script of rogpeppe/go-internal/testscript with additional commands: `world` starts
// everything, `as NAME …` acts as a person, `await` and `expect` check conditions, and so on; the
// README lists them. After every story the invariants are checked. Start reading at TestStories.
package e2e
