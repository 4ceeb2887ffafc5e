package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/server"
)

// reapFlags are the flags of reap.
type reapFlags struct {
	path        string
	dryRun, all bool
}

// reapCommand deletes or lists orphaned resources at the VM provider.
func reapCommand(w cli.World) *cobra.Command {
	var f reapFlags
	c := &cobra.Command{
		Use:   "reap",
		Short: "Delete orphaned cloud resources: VMs, images, IPs, keys, volumes (--dry-run lists them)",
		Long: "Compare the resources at the VM provider with the store, and delete those that no task needs: VMs, images, addresses,\n" +
			"keys and volumes with this deployment's label. Resources without the label are listed and never changed.\n\n" +
			"A running errand does this automatically and more carefully; stop it first. Use --all after the store was lost:\n" +
			"it deletes everything with the label.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), w) },
	}
	cli.ConfigFlag(c, &f.path)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "list the resources to delete with the reasons, and delete nothing")
	c.Flags().BoolVar(&f.all, "all", false, "ignore the store: delete everything with the label, after the store was lost")
	return c
}

func (f *reapFlags) run(ctx context.Context, w cli.World) (err error) {
	tools, err := openTools(ctx, w, f.path)
	if errors.Is(err, server.ErrServing) {
		return fmt.Errorf("%w\nIt reaps automatically, and its page /vms lists the resources that it does not manage. Stop it to reap manually%s", err, alsoTheSocket)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	plan, err := tools.Fleet().ReapPlan(ctx, fleet.ReapOptions{Reviewed: true, All: f.all})
	if err != nil {
		return err
	}
	if err := printPlan(w.Out, plan, f.dryRun); err != nil || f.dryRun {
		return errors.Join(err, unlisted(plan))
	}
	if err := tools.MayChange(ctx); err != nil {
		return err
	}
	gone, err := tools.Fleet().Reap(ctx, plan)
	if _, perr := fmt.Fprintf(w.Out, "%d of %d deleted.\n", len(gone), len(plan.Delete)); perr != nil {
		return errors.Join(err, perr)
	}
	return errors.Join(err, unlisted(plan))
}

// unlisted returns an error that names the kinds whose list could not be read.
func unlisted(plan fleet.ReapPlan) error {
	if len(plan.Unlisted) == 0 {
		return nil
	}
	return fmt.Errorf("some resources could not be listed, and none of their kind is deleted: %w", &fleet.UnlistedError{Kinds: plan.Unlisted})
}

// printPlan prints the resources to delete with the reasons, and those that need attention.
func printPlan(out io.Writer, plan fleet.ReapPlan, dryRun bool) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(verb, kind, id, name, why string) {
		if name != "" && name != id {
			id += " (" + name + ")"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", verb, kind, id, why) // Flush returns write errors
	}
	verb := "delete"
	if dryRun {
		verb = "would delete"
	}
	for _, i := range plan.Delete {
		line(verb, i.Kind, i.ID, i.Name, i.Explanation)
	}
	for _, i := range plan.Wait {
		line("too young", i.Kind, i.ID, i.Name, i.Explanation+"; will be deleted after "+i.After.UTC().Format("2006-01-02 15:04 UTC"))
	}
	for _, a := range plan.Alarms {
		line("check", a.Kind, a.ID, a.Name, a.Explanation)
	}
	if len(plan.Delete)+len(plan.Wait)+len(plan.Alarms) == 0 {
		_, _ = fmt.Fprintln(t, "No orphaned resources.")
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	return nil
}

// openTools opens the store and the VMs of a configuration. It logs only warnings, since a person runs the command.
func openTools(ctx context.Context, w cli.World, path string) (*server.Tools, error) {
	cfg, err := config.Load(path, w.Lookup)
	if err != nil {
		return nil, err
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: w.Err, NoColor: true}).Level(zerolog.WarnLevel).With().Timestamp().Logger()
	return server.OpenTools(ctx, cfg, server.Options{Log: log, Version: builtFrom().version, BinDir: w.BinDir})
}
