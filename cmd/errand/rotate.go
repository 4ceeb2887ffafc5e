package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/rotation"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/server"
)

// rotateCommand replaces secrets while errand works.
func rotateCommand(w cli.World) *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the webhook secret, the tether key or the provenance key without losing a webhook or a run",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("rotate takes what to replace: webhook-secret, tether-key or provenance-key"))
			}
			return cli.Usage(fmt.Errorf("rotate replaces webhook-secret, tether-key or provenance-key, but got %q; docs/deployment.md describes the other secrets", args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(rotateWebhookCommand(w), rotateTetherCommand(w), rotateProvenanceCommand(w))
	return c
}

func rotateWebhookCommand(w cli.World) *cobra.Command {
	var path string
	var wait time.Duration
	c := &cobra.Command{
		Use:   "webhook-secret",
		Short: "Replace the secret of the App's webhooks, here and at GitHub",
		Long: "Write a new secret before the present one in the file of github.webhook_secret, wait until errand is restarted and accepts both, set the\n" +
			"new one at GitHub, have GitHub repeat a webhook as a proof, and remove the previous one from the file. The command can be\n" +
			"interrupted and repeated at any time.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			file := cfg.SecretFiles()["github.webhook_secret"]
			switch {
			case cfg.GitHub.Webhooks == config.WebhooksPoll:
				return errors.New("github.webhooks is poll: errand reads webhooks from GitHub's log, and needs no secret for them")
			case file == "":
				return errors.New("github.webhook_secret is in an environment variable, which this command cannot change. Write the new secret and the present one " +
					"into it, one per line, the new one first; restart errand; enter the new one on the App's settings page; then remove the present one")
			}
			g := cfg.GitHub.WithURLs()
			f, err := forge.New(forge.Config{
				AppID: g.AppID, PrivateKey: []byte(g.PrivateKey.Reveal()), WebURL: g.URL, V3APIURL: g.APIURL, V4APIURL: g.GraphQLURL, Now: time.Now,
			})
			if err != nil {
				return err
			}
			client, base := selfclient.New(cfg, cfg.Listen)
			return rotation.Webhook{
				File: file, Hook: base + handlers.HookPath, Client: client, GitHub: f, Out: w.Out,
				Poll: time.Second, Wait: wait, Proof: time.Minute,
			}.Run(ctx)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for errand's restart")
	return c
}

func rotateTetherCommand(w cli.World) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "tether-key",
		Short: "Replace the key from which the tokens of VMs and runs are derived",
		Long: "Write a new key before the present one in the data folder. errand uses it from its next start. It accepts tokens of the previous key\n" +
			"until it starts while no agent works, and then removes that key.",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			err = keyfile.Replace(filepath.Join(cfg.Data, server.TetherKeyFile))
			if errors.Is(err, keyfile.ErrTwoSecrets) {
				return fmt.Errorf("%w: restart errand while no agent works (see `errand status`), and repeat this command afterwards", err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(w.Out, "There is a new tether key. Restart errand, such as with `systemctl restart errand`; agents that work continue.")
			return err
		},
	}
	cli.ConfigFlag(c, &path)
	return c
}

func rotateProvenanceCommand(w cli.World) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "provenance-key",
		Short: "Replace the key with which statements about pull requests are signed",
		Long: "Write a new key to the data folder, and keep the public key of the present one. errand signs with the new key at once, without a\n" +
			"restart. Statements that were signed before stay valid; give the new list of keys to everybody who verifies with a file.",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			k, err := keyfile.RotateSigning(filepath.Join(cfg.Data, server.ProvenanceKeyFile), time.Now())
			if err != nil {
				return err
			}
			list, err := provenance.PublishKeys(k)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w.Out, "There is a new provenance key. These are the public keys, which errand serves at %s:\n%s\n", provenance.KeysPath, list)
			return err
		},
	}
	cli.ConfigFlag(c, &path)
	return c
}
