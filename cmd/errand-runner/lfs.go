package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/runner/work"
)

// lfsCommand is `git lfs` for an agent on whose VM that is not installed, and the filter of every checkout.
// It knows what an agent needs: the rest of git-lfs is refused, with what to do instead.
func lfsCommand() *cobra.Command {
	lfs := &cobra.Command{
		Use: "lfs", Short: "Keep large files of Git LFS: what a checkout's filter and `git lfs` run", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("git lfs %q is not known here: files that .gitattributes gives filter=lfs are kept as large files by git add, and `git lfs pull [--include=PATH]` fetches them; errand uploads what you commit", args)
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
			Use: "install", Short: "Nothing is left to do", Args: cobra.ArbitraryArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "This checkout keeps large files already.")
				return err
			},
		},
	)
	return lfs
}

// pullCommand takes what git-lfs takes: a remote, of which there is one, and patterns with commas between them.
func pullCommand() *cobra.Command {
	var include string
	cmd := &cobra.Command{
		Use: "pull [REMOTE]", Short: "Fetch the content of large files", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := filepath.Join(".", os.Getenv("GIT_PREFIX")) // git runs an alias at the top of the checkout
			out, err := work.LFSPull(cmd.Context(), dir, strings.FieldsFunc(include, func(r rune) bool { return r == ',' }))
			if err != nil {
				return err
			}
			for _, m := range out.Missing {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), m) // the error says how many
			}
			if len(out.Missing) > 0 {
				return fmt.Errorf("%d large files could not be had", len(out.Missing))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d large files have their content.\n", out.Files)
			return err
		},
	}
	cmd.Flags().StringVarP(&include, "include", "I", "", "only what fits one of these patterns of git, with commas between them")
	return cmd
}
