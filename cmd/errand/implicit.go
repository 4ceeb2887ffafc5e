package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
)

// useSetupConfig makes the configuration that `errand setup` writes to a path the default of -c, if it exists. Commands that use a default say which.
func useSetupConfig(root *cobra.Command, w cli.World, written string) {
	if _, err := os.Stat(written); errors.Is(err, fs.ErrNotExist) || !filepath.IsAbs(written) {
		written = "" // another error, such as a missing permission, is reported when the file is opened
	}
	if written != "" {
		setDefaultConfig(root, written)
	}
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		f, data := c.Flags().Lookup("config"), c.Flags().Lookup("data")
		if f == nil || f.Changed || data != nil && data.Changed { // it is named, or not needed
			return nil
		}
		path := f.Value.String()
		if written != "" {
			if err := checkSetupConfig(path); err != nil {
				return err
			}
		}
		if whole, err := filepath.Abs(path); err == nil && exists(path) && c.Name() != "serve" { // whose log says it
			_, _ = fmt.Fprintf(w.Err, "errand: using %s\n", whole)
		}
		return nil
	}
}

// setDefaultConfig changes the default of -c in a command and those below it.
func setDefaultConfig(c *cobra.Command, path string) {
	if f := c.Flags().Lookup("config"); f != nil && f.DefValue == cli.DefaultConfig {
		f.DefValue = path
		_ = f.Value.Set(path) // a text, which cannot be refused
	}
	for _, sub := range c.Commands() {
		setDefaultConfig(sub, path)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ownConfig matches a configuration of errand's, also one that is not valid YAML.
var ownConfig = regexp.MustCompile(`(?ms)^github:.*\bapp_id\b`)

// isAnother reports whether the current folder has a configuration of errand's that is not the file at path. A config.yml of another program is none.
func isAnother(path string) bool {
	here, err := os.Stat(cli.DefaultConfig)
	if err != nil || !here.Mode().IsRegular() {
		return false
	}
	there, err := os.Stat(path)
	if err == nil && os.SameFile(here, there) {
		return false
	}
	text, err := config.ReadFile(cli.DefaultConfig)
	return err == nil && ownConfig.Match(text)
}

// checkSetupConfig returns why the configuration of setup cannot be used without naming it: another one may be meant, or it means another folder
// for data wherever a command runs. All other problems are reported by the command that loads it.
func checkSetupConfig(path string) error {
	if isAnother(path) {
		return cli.Usage(fmt.Errorf("both %s and the %s in this folder are configurations of errand: name the one you mean with -c", path, cli.DefaultConfig))
	}
	keys := struct {
		Data string `yaml:"data"`
	}{Data: config.Default().Data}
	text, err := config.ReadFile(path)
	if err != nil || yaml.Unmarshal(text, &keys) != nil || keys.Data == "" || filepath.IsAbs(keys.Data) {
		return nil
	}
	return fmt.Errorf("%s: `data: %s` means another folder wherever a command runs: write an absolute path there, or name the file with -c", path, keys.Data)
}
