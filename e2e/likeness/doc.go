// Package likeness holds the stand-in for GitHub against what GitHub publishes about itself: the OpenAPI description
// of its REST interface, the schemas and recorded examples of its webhooks, and its GraphQL schema.
//
// While all other tests run, simgithub writes one of each kind of answer and webhook into a folder (simgithub.RecordVar).
// Afterwards the tests here read that folder, judge every recording, and fail for each thing that is unlike GitHub, unless
// it is listed in exceptions, with the reason; an exception that is not needed any more fails as well. `make test-full` does
// all this. What is published is installed from npm at the versions of package-lock.json; nothing of it is kept in the
// tree. Start reading at TestLikeness.
package likeness
