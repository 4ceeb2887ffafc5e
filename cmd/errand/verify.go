package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/forge/evidence"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/words"
)

const (
	verifyTimeout = 5 * time.Minute
	maxKeyFile    = 4 << 20 // bytes
)

// verifyFlags are the flags of `errand verify`.
type verifyFlags struct {
	keys   []string
	asJSON bool
	strict bool
	github string
}

// verifyCommand verifies the provenance of a pull request with nothing but GitHub.
func verifyCommand(w cli.World) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify OWNER/REPO#PR",
		Short: "Verify how the changes of a pull request came about, with nothing but GitHub",
		Long: "Read the signed statement on a pull request of errand, and compare it with what GitHub shows: the issue, the plan, its approval, the commits\n" +
			"and the merge. The report names each link of this chain that does not hold.\n\n" +
			"The command needs a token that can read the repository, in GITHUB_TOKEN or GH_TOKEN, and no access to errand. With --key it trusts only the\n" +
			"keys in a file: download it from " + provenance.KeysPath + " of errand's public address, or ask the operator for it. Without --key it uses\n" +
			"the key that the statement names. That detects accidental changes, but anybody who can push to the repository could forge such a statement.\n\n" +
			"The exit code is 0 if every link holds, 1 if one was altered, and 2 if a link could not be checked, such as a 👍 that was removed since,\n" +
			"or if there is no --key. With --strict it is also 2 if GitHub cannot confirm a link, or if the pull request has commits by others.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !cli.TaskName.MatchString(args[0]) {
				return cli.Usage(errors.New("verify takes one pull request, as OWNER/REPO#NUMBER"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
			defer cancel()
			return verify(ctx, w, args[0], f)
		},
	}
	c.Flags().StringArrayVar(&f.keys, "key", nil, "file with the public keys to trust; may be repeated")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the report and the statement as JSON")
	c.Flags().BoolVar(&f.strict, "strict", false, "require GitHub to confirm every link, and accept no commits by others")
	c.Flags().StringVar(&f.github, "github", "", "base URL of GitHub (default $GITHUB_SERVER_URL, else https://github.com)")
	return c
}

// verify prints the report about a pull request.
func verify(ctx context.Context, w cli.World, name string, f verifyFlags) error {
	keys, err := readKeys(f.keys)
	if err != nil {
		return cli.Unchecked(err)
	}
	repo, n, _ := strings.Cut(name, "#")
	number, err := strconv.Atoi(n)
	if err != nil {
		return cli.Usage(fmt.Errorf("read the number of %s: %w", name, err))
	}
	cfg := evidence.Config{Repository: repo, UserAgent: "errand/" + builtFrom().version, Transport: http.DefaultTransport, Now: time.Now}
	if cfg.Token = firstSet(w, "GITHUB_TOKEN", "GH_TOKEN"); cfg.Token == "" {
		return cli.Unchecked(errors.New("there is no token: set GITHUB_TOKEN to one that can read the repository, such as with `GITHUB_TOKEN=$(gh auth token)`"))
	}
	if cfg.WebURL, cfg.APIURL, cfg.GraphQLURL, err = gitHubAddresses(w, f.github); err != nil {
		return cli.Usage(err)
	}
	reader, err := evidence.New(cfg)
	if err != nil {
		return cli.Unchecked(err)
	}
	report, err := provenance.Verify(ctx, reader, number, keys)
	if err != nil {
		return cli.Unchecked(fmt.Errorf("verify %s: %w", name, err))
	}
	return show(w, name, report, f)
}

// show prints a report. The error has its exit code: that of a report which cannot be printed is not that of a broken chain.
func show(w cli.World, name string, r provenance.Report, f verifyFlags) error {
	if err := printReport(w, r, f.asJSON); err != nil {
		return cli.Unchecked(err)
	}
	if n := r.Unproven(); f.strict && n > 0 && r.Result == provenance.ChainHolds {
		return cli.Unchecked(fmt.Errorf("the provenance of %s holds, but GitHub does not confirm %s, which --strict requires", name, words.Many(n, "link")))
	}
	return conclude(name, r.Result)
}

// conclude returns the error, and with it the exit code, for a result.
func conclude(name string, result provenance.Result) error {
	switch result {
	case provenance.ChainHolds:
		return nil
	case provenance.ChainBroken:
		return fmt.Errorf("the provenance of %s does not hold", name)
	case provenance.ChainUnpinned:
		return cli.Unchecked(fmt.Errorf("the provenance of %s is not confirmed, because any App can sign such a statement: pass the deployment's public keys with --key", name))
	}
	return cli.Unchecked(fmt.Errorf("the provenance of %s could not be confirmed completely", name))
}

func printReport(w cli.World, r provenance.Report, asJSON bool) error {
	if asJSON {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		return cli.PrintJSON(w.Out, append(data, '\n'))
	}
	var out strings.Builder
	table := cli.NewTable(&out)
	table.Row("LINK", "VERDICT", "DETAIL") // as a row, whose details are not cut
	for _, l := range r.Links {
		table.Row(l.Name, string(l.Verdict), l.Detail)
	}
	table.Flush()
	more := ""
	if r.Result == provenance.ChainUnpinned {
		more = " (App @" + logview.OneLine(r.App.Login) + ")"
	}
	if n := r.Others(); n > 0 {
		more += fmt.Sprintf("; it does not cover %s by others", words.Many(n, "commit"))
	}
	_, err := fmt.Fprintf(w.Out, "%s\n%s: the chain %s%s.\n", out.String(), logview.OneLine(r.PullRequest), r.Result, more)
	return err
}

// readKeys reads the keys in files.
func readKeys(files []string) (list []provenance.Key, err error) {
	for _, name := range files {
		info, err := os.Stat(name)
		if err == nil && info.Size() > maxKeyFile {
			err = fmt.Errorf("%s is too large for a file with keys", name)
		}
		if err != nil {
			return nil, fmt.Errorf("read the keys: %w", err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the keys: %w", err)
		}
		keys, err := provenance.ParseKeys(data)
		if err != nil {
			return nil, fmt.Errorf("read the keys in %s: %w", name, err)
		}
		list = append(list, keys...)
	}
	return list, nil
}

// gitHubAddresses returns the addresses of GitHub's pages, REST API and GraphQL API; empty ones are those of github.com. A server that was
// given as a flag has the usual addresses of its kind. Otherwise the variables that GitHub Actions sets apply.
func gitHubAddresses(w cli.World, server string) (web, rest, graphQL string, err error) {
	if server == "" {
		server, rest, graphQL = firstSet(w, "GITHUB_SERVER_URL"), firstSet(w, "GITHUB_API_URL"), firstSet(w, "GITHUB_GRAPHQL_URL")
	}
	server, rest = strings.TrimSuffix(server, "/"), strings.TrimSuffix(rest, "/")
	for _, address := range []string{server, rest, graphQL} {
		if u, err := url.Parse(address); err != nil || address != "" && (u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			return "", "", "", fmt.Errorf("the address of GitHub %q is not an http or https URL", address)
		}
	}
	if rest == "" && server != "" && server != "https://github.com" {
		u, _ := url.Parse(server) // parsed above
		rest = server + "/api/v3"
		if strings.HasSuffix(u.Hostname(), ".ghe.com") {
			rest = u.Scheme + "://api." + u.Host
		}
	}
	if graphQL == "" && rest != "" {
		graphQL = strings.TrimSuffix(rest, "/v3") + "/graphql" // below /api/v3 of a server, or at the root of a host of its own
	}
	return server, rest, graphQL, nil
}

// firstSet returns the first of these environment variables that is not empty.
func firstSet(w cli.World, names ...string) string {
	for _, name := range names {
		if v, _ := w.Lookup(name); v != "" {
			return v
		}
	}
	return ""
}
