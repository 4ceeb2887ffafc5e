// Command fuzz runs every fuzz target of the module for some time, one after the other: go test
// runs one target of one package at a time.
//
//	go run ./internal/tools/fuzz -time 10s [name part]
//
// It finds the targets in the test files, and stops at the first that fails. go test stores the failing
// input in testdata of the target's package. Start with targets.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	each := flag.String("time", "10s", "how `long` to run each target")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *each, flag.Arg(0))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// run runs the targets whose name contains part.
func run(ctx context.Context, each, part string) error {
	list, err := targets(os.DirFS("."))
	if err != nil {
		return err
	}
	n := 0
	for _, t := range list {
		if !strings.Contains(t.name, part) {
			continue
		}
		fmt.Printf("fuzz %s %s\n", t.dir, t.name)
		// Minimizing inputs that only reach new code would take all the time of a slow target.
		cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each, "-fuzzminimizetime=10x", "./"+t.dir)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s in %s: %w", t.name, t.dir, err)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("no target has %q in its name", part)
	}
	fmt.Printf("%d targets passed for %s each\n", n, each)
	return nil
}

// target is one fuzz target.
type target struct{ dir, name string }

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// targets returns every fuzz target of the tree, in the order of its folders.
func targets(tree fs.FS) ([]target, error) {
	var list []target
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		for _, m := range declaration.FindAllSubmatch(src, -1) {
			list = append(list, target{dir: filepath.ToSlash(filepath.Dir(path)), name: string(m[1])})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find fuzz targets: %w", err)
	}
	return list, nil
}
