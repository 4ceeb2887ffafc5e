// Package likeness compares the GitHub simulator with the descriptions that GitHub publishes: the OpenAPI description
// of its REST interface, the schemas and recorded examples of its webhooks, and its GraphQL schema.
//
// While all other tests run, simgithub records one of each kind of answer and webhook in a folder (record.Var).
// The tests here read that folder, check every recording, and fail for each difference from GitHub, unless
// it is listed in exceptions, with the reason; an unused exception fails as well. `make test-full` does
// all this. The descriptions are installed from npm in the versions of package-lock.json; none of them is kept in the
// tree. Start reading at TestLikeness.
package likeness
