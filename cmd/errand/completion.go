package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/costs"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/operator"
	"github.com/errand-bot/errand/internal/words"
)

const (
	completionTime = time.Second // the time that the running errand has to name its tasks
	maxCompletions = 200
)

// completionCommand prints the script with which a shell completes errand's commands.
func completionCommand(w cli.World) *cobra.Command {
	shells := []cobra.Completion{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and tasks in a shell",
		Long: "Print a script that completes errand's commands, flags and, while errand runs, its tasks. To install it:\n\n" +
			"  bash  errand completion bash > ~/.local/share/bash-completion/completions/errand, or add this line to ~/.bashrc:\n" +
			"        source <(errand completion bash)\n" +
			"  zsh   errand completion zsh > \"${fpath[1]}/_errand\", in a folder that you can write to\n" +
			"  fish  errand completion fish > ~/.config/fish/completions/errand.fish\n\n" +
			"Then open a new shell. Tasks are those of the errand in the configuration: config.yml, or the file of -c.",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return cli.Usage(fmt.Errorf("completion takes a shell, bash, zsh or fish, but got %q", args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "zsh":
				return c.Root().GenZshCompletion(w.Out)
			case "fish":
				return c.Root().GenFishCompletion(w.Out, true)
			}
			if _, err := io.WriteString(w.Out, bashWords); err != nil {
				return err
			}
			return c.Root().GenBashCompletionV2(w.Out, true)
		},
	}
}

// bashWords replaces the only function that the script for bash needs of the package bash-completion, which small servers lack. Bash
// splits words also at = and :, and the function joins these again.
const bashWords = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        local i joined=""
        words=() cword=0
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            if [[ ${COMP_WORDS[i]} == [=:]* || $joined == *[=:] ]] && ((${#words[@]} > 0)); then
                joined+=${COMP_WORDS[i]}
                words[${#words[@]} - 1]=$joined
            else
                joined=${COMP_WORDS[i]}
                words+=("$joined")
            fi
            ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
        done
        cur=${words[cword]} prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`

// A completer returns the possible next words of a command, perhaps each with a tab and a description.
type completer func(c *cobra.Command, args []string, toComplete string) []cobra.Completion

// addCompletions completes the arguments of every command by its usage line, and the values of its flags.
func addCompletions(parent *cobra.Command, w cli.World) {
	values := map[string]completer{
		"level":    func(*cobra.Command, []string, string) []cobra.Completion { return logview.Levels() },
		"repo":     repos(w),
		"generate": func(*cobra.Command, []string, string) []cobra.Completion { return generators() },
	}
	for _, c := range parent.Commands() {
		addCompletions(c, w)
		if len(c.ValidArgs) == 0 {
			c.ValidArgsFunction = only(argumentsOf(c, w))
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete, isKnown := values[f.Name]
			if !isKnown && f.Value.Type() == "string" {
				return // the shell completes the name of a file
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, only(complete)) // it fails only for a flag that does not exist
		})
	}
}

// argumentsOf returns what completes a command's arguments, or nil.
func argumentsOf(c *cobra.Command, w cli.World) completer {
	_, usage, _ := strings.Cut(c.Use, " ")
	ended := slices.Contains([]string{"audit", "destroy", "logs", "purge", "restart", "retry", "task"}, c.Name())
	switch {
	case c.Name() == "adopt", c.Name() == "run":
		return unlessGiven(unstarted(w), usage)
	case strings.Contains(usage, "OWNER/REPO#N"):
		return unlessGiven(tasks(w, ended), usage)
	case strings.Contains(usage, "GROUP"):
		return unlessGiven(groups(w), usage)
	}
	return nil
}

// only makes a completer a function for cobra: the shell adds no names of files.
func only(complete completer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if complete == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := slices.DeleteFunc(complete(c, args, toComplete), func(s string) bool { return !strings.HasPrefix(s, toComplete) })
		return list[:min(len(list), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
	}
}

// unlessGiven leaves out what the command line has already, and everything if the usage line takes no further argument.
func unlessGiven(complete completer, usage string) completer {
	return func(c *cobra.Command, args []string, toComplete string) []cobra.Completion {
		if len(args) > 0 && !strings.Contains(usage, "…") {
			return nil
		}
		return slices.DeleteFunc(complete(c, args, toComplete), func(s string) bool {
			word, _, _ := strings.Cut(s, "\t")
			return slices.Contains(args, word)
		})
	}
}

// listed reads the tasks of the running errand. Completions have no errors: without an answer there is nothing to complete.
func listed(c *cobra.Command, w cli.World, repo string) (l operator.Listing) {
	path := c.Flag("config").Value.String()
	cfg, err := config.Load(path, w.Lookup)
	if err != nil {
		return l
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	l, err = operator.List(ctx, cfg, repo)
	if err != nil {
		return operator.Listing{}
	}
	return l
}

// tasks completes open tasks, and ended ones too if all is set. Only what cannot mean anything else to a shell is offered.
func tasks(w cli.World, all bool) completer {
	return func(c *cobra.Command, _ []string, toComplete string) (list []cobra.Completion) {
		repo, _, isWhole := strings.Cut(toComplete, "#")
		if !isWhole {
			repo = ""
		}
		l := listed(c, w, repo)
		if all {
			l.Tasks = append(l.Tasks, l.Ended...)
		}
		for _, t := range l.Tasks {
			if key := fmt.Sprintf("%s#%d", t.Repo, t.Issue); cli.TaskName.MatchString(key) {
				list = append(list, cobra.CompletionWithDesc(key, words.Phase(t.Phase)))
			}
		}
		return list
	}
}

// unstarted completes issues that have errand's label or assignee, but no task.
func unstarted(w cli.World) completer {
	return func(c *cobra.Command, _ []string, _ string) (list []cobra.Completion) {
		for _, t := range listed(c, w, "").Unstarted {
			if key := fmt.Sprintf("%s#%d", t.Repo, t.Issue); cli.TaskName.MatchString(key) {
				list = append(list, key)
			}
		}
		return list
	}
}

// repos completes the repositories of tasks.
func repos(w cli.World) completer {
	return func(c *cobra.Command, _ []string, _ string) []cobra.Completion {
		l, found := listed(c, w, ""), map[string]bool{}
		for _, t := range append(l.Tasks, l.Ended...) {
			if cli.RepoName.MatchString(t.Repo) {
				found[t.Repo] = true
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
}

// groups completes the groups of base images in the configuration.
func groups(w cli.World) completer {
	return func(c *cobra.Command, _ []string, _ string) []cobra.Completion {
		cfg, err := config.Load(c.Flag("config").Value.String(), w.Lookup)
		if err != nil {
			return nil
		}
		return slices.Sorted(maps.Keys(cfg.Bake))
	}
}

// generators are the names of the traces that simulate-costs generates.
func generators() (names []string) {
	for _, g := range costs.Generators() {
		names = append(names, g.Name)
	}
	return names
}
