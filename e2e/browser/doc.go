// Package browser holds the tests that go through the pages as a person does: headless Chromium is driven
// over the whole life of a task by clicks and keys alone, and every page of the board and of the stand-in
// GitHub is judged on the way: no error in its console, no request that fails, nothing that axe calls
// serious, nothing wider than a phone, everything to be reached with the keyboard.
//
// They run with ERRAND_TEST_FULL=1 where Chromium is installed, and for `make pictures`, which has them
// keep the pictures of the README. Start reading at TestHeavyByClicks.
package browser
