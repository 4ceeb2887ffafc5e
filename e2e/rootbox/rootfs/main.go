//go:build linux

// Command rootfs builds the file system of root boxes in .cache/rootbox, so that tests do not wait for it. It needs
// root, a Debian mirror and the programs that package rootbox lists, takes about a minute, and does nothing if the file
// system exists.
//
// Start reading at main; the work is done in package rootbox.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/errand-bot/errand/e2e/rootbox"
)

func main() {
	if reason := rootbox.Missing(); reason != "" {
		fmt.Fprintln(os.Stderr, "root boxes cannot be made here:", reason)
		os.Exit(1)
	}
	dir, err := rootbox.CacheDir()
	if err == nil {
		dir, err = rootbox.Rootfs(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
