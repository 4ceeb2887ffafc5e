// Command simagents is the simulated agents as a small program. A test program can also be an agent itself, but sandboxes start an
// agent for each run, and test programs are large: starting one, above all with the race detector, takes many times longer.
//
// Its first argument is simagent or simcodex; the others are the agent's. Start with main.
package main

import (
	"fmt"
	"os"

	"github.com/errand-bot/errand/internal/sim/simagent"
	"github.com/errand-bot/errand/internal/sim/simcodex"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "simagent":
			os.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
		case "simcodex":
			os.Exit(simcodex.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
		}
	}
	fmt.Fprintln(os.Stderr, "usage: simagents simagent|simcodex ARGUMENT …")
	os.Exit(2)
}
