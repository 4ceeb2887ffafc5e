// Package e2e tells stories: each file in testdata/stories is one promise of errand, played against
// the whole server with stand-ins for GitHub, the model and the agent, on real git, SSH, HTTP and
// processes.
//
// A story is a txtar script of rogpeppe/go-internal/testscript with commands of ours: `world` starts
// everything, `as NAME …` acts as a person, `await` and `expect` look at conditions, and so on; the
// README lists them. After every story the invariants are checked. Start reading at TestStories.
package e2e
