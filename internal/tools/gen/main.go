// Command gen writes the documents that are generated from code:
//
//	docs/lifecycle.md, transitions.md, vm-lifecycle.md  from the transition tables and the doc comments of state and state/vm
//	docs/commands.md        from the command table of internal/comment/command
//	docs/configuration.md, docs/configuration-agents.md  from the doc comments, keys and defaults of internal/config
//	docs/repository-settings.md, config.example.yml  from the same
//	docs/prices.md          from the prices of internal/modelapi
//	docs/vm-costs.md        its table of costs, from a simulation by internal/costs
//	docs/packages.md        from the packages' doc comments and imports
//	app.yml, docs/install.md  from internal/forge/manifest, and its table from the questions of internal/setup
//	CONTRIBUTING.md         its table of layers, from internal/tools/layers
//
//	go run ./internal/tools/gen [-check]
//
// With -check it writes nothing and fails if a document is outdated. Run it at the top of the tree. Start with documents.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail if something would change")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// document is one generated file.
type document struct {
	path string
	text func(*source) (string, error)
}

// documents returns all generated files.
func documents() []document {
	return []document{
		{"docs/lifecycle.md", lifecycle},
		{"docs/transitions.md", transitions},
		{"docs/vm-lifecycle.md", vmLifecycle},
		{"docs/commands.md", commands},
		{"docs/configuration.md", configuration},
		{"docs/configuration-agents.md", configurationOfAgents},
		{"docs/repository-settings.md", repositorySettings},
		{"config.example.yml", example},
		{"docs/prices.md", prices},
		{"docs/vm-costs.md", vmCosts},
		{"docs/packages.md", packageList},
		{"app.yml", appManifest},
		{"docs/install.md", installation},
		{"CONTRIBUTING.md", contributing},
	}
}

// run writes or checks all documents of the tree at root.
func run(root string, check bool) error {
	src := newSource(root)
	for _, d := range documents() {
		text, err := d.text(src)
		if err != nil {
			return fmt.Errorf("generate %s: %w", d.path, err)
		}
		path := filepath.Join(root, d.path)
		old, err := os.ReadFile(path)
		if err == nil && string(old) == text {
			continue
		}
		if check {
			return fmt.Errorf("%s is outdated: run `make generate` and commit the result", d.path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create the folder of %s: %w", d.path, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", d.path, err)
		}
		fmt.Println("wrote", d.path)
	}
	return nil
}
