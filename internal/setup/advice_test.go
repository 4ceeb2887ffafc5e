package setup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/gateway"
)

// TestAdviceOnRepositories: what is missing in the repositories is said, and how to correct it; what the operator does not want is not made.
func TestAdviceOnRepositories(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip = []string{"webhook", "service"}
	o.answers["label"], o.answers["create_label"], o.answers["assignee"] = "later", "no", "stranger"
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	for _, repo := range []string{"acme/shop", "ada/shop"} {
		at := o.answers["github"] + "/" + repo
		o.wantOutput(repo+`: lacks the label "later"; create it at `+at+"/labels.", repo+": issues cannot be assigned to stranger.", "triage role at "+at+"/settings/access")
	}
	if strings.Contains(o.screen.String(), "created the label") {
		t.Errorf("a label was created:\n%s", o.screen)
	}
	o.opts.Force, o.answers["label"], o.answers["assignee"] = true, "", ""
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	o.wantOutput("Tasks are started by mentioning the App in a comment.")
}

// TestForceKeepsOldFiles replaces the configuration, a secret and the unit, twice: each old one is kept.
func TestForceKeepsOldFiles(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip, o.opts.Force = []string{"installation", "webhook", "repositories"}, true
	o.answers["unit"] = "write"
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	o.env.Now = func() time.Time { return now }
	o.env.TryModels = func(context.Context, config.Config) map[string]error {
		return map[string]error{"anthropic": gateway.UnclearError{Status: 503}}
	}
	for _, key := range []string{"first", "second", "third"} { // within a second
		o.write("model", key)
		o.env.Program = "/opt/" + key + "/errand"
		if err := o.run(); err != nil {
			t.Fatalf("%v\n%s", err, o.screen)
		}
		o.wantOutput("Not checked: the provider answers 503")
		if got := o.read("model-key"); got != key+"\n" {
			t.Errorf("the key is %q, want %q", got, key)
		}
	}
	for path, texts := range map[string][]string{
		filepath.Join(o.dir, "model-key"): {"second\n", "first\n"}, filepath.Join(o.dir, "config.yml"): {"app_id: ", "app_id: "}, o.path("errand.service"): {"/opt/second/", "/opt/first/"},
	} {
		old, err := filepath.Glob(path + ".20261121-*.old")
		if err != nil || len(old) != len(texts) {
			t.Fatalf("kept %v, %v", old, err)
		}
		for i, want := range texts { // .old is after -2.old
			if text, err := os.ReadFile(old[i]); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q (%v):\n%s", old[i], want, err, text)
			}
		}
	}
}

// TestSetupRefusesEarly: what would make a setup unsafe or lose something ends it before anything is created, with advice.
func TestSetupRefusesEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(o *office) error
		want  []string
	}{
		"others can write to the folder": {func(o *office) error { return os.Chmod(o.dir, 0o770) }, []string{"other users can write to DIR", "chmod go-w DIR"}},
		"a broken file of progress": {
			func(o *office) error { return os.WriteFile(filepath.Join(o.dir, "setup.json"), []byte("{"), 0o600) },
			[]string{"read the progress of an earlier setup", "If you delete DIR/setup.json"},
		},
		"a megabyte of progress": {
			func(o *office) error {
				return os.WriteFile(filepath.Join(o.dir, "setup.json"), make([]byte, 2<<20), 0o600)
			}, []string{"larger than 1048576 bytes"},
		},
		"a page for the network": {
			func(o *office) error { o.opts.Web, o.opts.Listen = true, "0.0.0.0:8099"; return nil }, []string{`--listen "0.0.0.0:8099": write an address of this host only`},
		},
		"an unknown user": {func(o *office) error { o.answers["user"] = "no-such-user"; return nil }, []string{`user: "no-such-user": no such user; create it with`}},
		"an empty key":    {func(o *office) error { o.write("model", " \n"); return nil }, []string{"model_key: the secret is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			if err := os.MkdirAll(o.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.plant(o); err != nil {
				t.Fatal(err)
			}
			before := o.github.App().ID
			err := o.run()
			for _, want := range c.want {
				if want = strings.ReplaceAll(want, "DIR", o.dir); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q", err, want)
				}
			}
			if o.github.App().ID != before {
				t.Error("an App was created")
			}
		})
	}
}
