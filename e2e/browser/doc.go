// Package browser tests the pages like a user: it drives headless Chromium through a complete task with clicks
// and keys alone, and checks every page of the board and of the simulated GitHub on the way: no errors in the
// console, no failed requests, no serious findings by axe, nothing wider than a phone, and all controls
// reachable by keyboard. It sets up errand by `errand setup --web` in the same way.
//
// The tests run with ERRAND_TEST_FULL=1 where Chromium is installed, and for `make pictures`, which saves
// the pictures of the README. Start reading at TestHeavyByClicks.
package browser
