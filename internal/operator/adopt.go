package operator

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
)

// adoptCommand starts the tasks of issues that had a trigger before errand watched for it.
func adoptCommand(w cli.World) *cobra.Command {
	var path string
	o := order{notDone: "not started"}
	c := &cobra.Command{
		Use:   "adopt OWNER/REPO#N …",
		Short: "Start the tasks of issues that already had the label or assignee",
		Long: "Start the tasks of issues that had errand's label or assignee before errand was installed or configured for it. The\n" +
			"board lists them under “Not started”. The trigger counts as if it had been set now by the person who set it, who\n" +
			"needs write access. errand has to be running; the command reaches it at admin.listen or listen.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("adopt takes issues, as OWNER/REPO#N"))
			}
			for _, a := range args {
				if !cli.TaskName.MatchString(a) {
					return cli.Usage(fmt.Errorf("adopt takes issues, as OWNER/REPO#N, but got %q", a))
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			o.do = func(ctx context.Context, issue string) (string, error) {
				a, err := post(ctx, orderTimeout, cfg, pageOf(issue, "adopt"), url.Values{})
				if o.asJSON {
					return o.line(issue, a.Text()), err
				}
				return "started: " + logview.OneLine(a.Text()) + "\n", err
			}
			return o.each(c.Context(), w, args)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object per issue")
	return c
}
