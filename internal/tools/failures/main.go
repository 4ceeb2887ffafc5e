// Command failures lists the tests that failed, each with the first lines of its last messages.
//
//	go run ./internal/tools/failures .cache/tests.json
//
// The file has the output of `go test -json`, as gotestsum keeps it. That does not tell errors from other messages; a test's last ones are
// chosen because it usually ends with its errors. Packages that were not built, or that failed outside of their tests, are listed too.
// The list is empty if nothing failed. Start with read.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: failures FILE")
		os.Exit(2)
	}
	f, err := os.Open(os.Args[1])
	if err == nil {
		err = list(os.Stdout, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failures:", err)
		os.Exit(1)
	}
}
