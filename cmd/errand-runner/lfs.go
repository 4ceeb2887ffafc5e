package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/runner/work"
)

// lfsCommand implements `git lfs` for agents on VMs without git-lfs, and the filter of every checkout. It supports the
// subcommands that agents need, and refuses others with an alternative.
func lfsCommand() *cobra.Command {
	lfs := &cobra.Command{
		Use: "lfs", Short: "Handle Git LFS files, as the filter of a checkout and as `git lfs`", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("git lfs %q is not supported here: git add stores files with filter=lfs in .gitattributes as large files, and `git lfs pull [--include=PATH]` fetches them; errand uploads what you commit", args)
		},
	}
	lfs.AddCommand(
		&cobra.Command{
			Use: "clean", Short: "Content in, pointer out", Args: cobra.ArbitraryArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return work.LFSClean(cmd.Context(), ".", cmd.InOrStdin(), cmd.OutOrStdout())
			},
		},
		&cobra.Command{
			Use: "smudge", Short: "Pointer in, content out", Args: cobra.ArbitraryArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return work.LFSSmudge(cmd.Context(), ".", cmd.InOrStdin(), cmd.OutOrStdout())
			},
		},
		pullCommand(),
		&cobra.Command{
			Use: "install", Short: "Do nothing: Git LFS is set up already", Args: cobra.ArbitraryArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "Git LFS is already set up in this checkout.")
				return err
			},
		},
	)
	return lfs
}

// pullCommand accepts the arguments of git-lfs: a remote, which is ignored, and comma-separated patterns.
func pullCommand() *cobra.Command {
	var include string
	cmd := &cobra.Command{
		Use: "pull [REMOTE]", Short: "Fetch the content of large files", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := filepath.Join(".", os.Getenv("GIT_PREFIX")) // git runs an alias in the top directory of the checkout
			out, err := work.LFSPull(cmd.Context(), dir, strings.FieldsFunc(include, func(r rune) bool { return r == ',' }))
			if err != nil {
				return err
			}
			for _, m := range out.Missing {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), m) // the error reports the number
			}
			if len(out.Missing) > 0 {
				return fmt.Errorf("%d large files could not be fetched", len(out.Missing))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Fetched the content of %d large files.\n", out.Files)
			return err
		},
	}
	cmd.Flags().StringVarP(&include, "include", "I", "", "only files that match one of these comma-separated git patterns")
	return cmd
}
