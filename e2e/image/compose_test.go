package image

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/errand-bot/errand/internal/config"
)

// compose has the keys of the compose file that the tests know; a new one needs a test here.
type compose struct {
	Services map[string]service
	Volumes  map[string]struct{ Name string }
}

type service struct {
	Image         string
	PullPolicy    string `yaml:"pull_policy"`
	ContainerName string `yaml:"container_name"`
	Init          bool
	Restart       string
	Grace         time.Duration `yaml:"stop_grace_period"`
	ReadOnly      bool          `yaml:"read_only"`
	CapDrop       []string      `yaml:"cap_drop"`
	SecurityOpt   []string      `yaml:"security_opt"`
	Tmpfs         []string
	Ports         []string
	Volumes       []string
	Healthcheck   struct {
		Test        []string
		Interval    time.Duration
		Timeout     time.Duration
		StartPeriod time.Duration `yaml:"start_period"`
	}
}

// readCompose returns the service of the compose file in docs/deployment.md, and the document's text.
func readCompose(t *testing.T) (service, compose, string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(services:\n.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("docs/deployment.md has %d compose files, want one", len(found))
	}
	var c compose
	if err := yaml.UnmarshalWithOptions([]byte(found[0][1]), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	s, ok := c.Services["errand"]
	if !ok || len(c.Services) != 1 {
		t.Fatalf("the compose file has the services %v, want errand", c.Services)
	}
	return s, c, string(text)
}

// TestCompose checks that the compose file gives errand nothing that it does not need, and enough time to end.
func TestCompose(t *testing.T) {
	t.Parallel()
	s, c, text := readCompose(t)
	for problem, found := range map[string]bool{
		"asks a registry for the image":               s.Image != "localhost/errand:VERSION" || s.PullPolicy != "never",
		"can write to the image":                      !s.ReadOnly,
		"keeps capabilities":                          !slices.Equal(s.CapDrop, []string{"ALL"}),
		"lets programs gain privileges":               !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}),
		"does not restart errand":                     s.Restart != "unless-stopped",
		"does not collect processes that git leaves":  !s.Init,
		"kills errand before it ends":                 s.Grace <= config.Default().Timing.Shutdown,
		"can change the configuration":                !slices.Contains(s.Volumes, "./etc:/etc/errand:ro"),
		"does not keep the data":                      !slices.Contains(s.Volumes, "data:/var/lib/errand"),
		"publishes the port to more than this host":   !slices.Equal(s.Ports, []string{"127.0.0.1:8080:8080"}),
		"does not check errand's health":              len(s.Healthcheck.Test) < 2 || s.Healthcheck.Test[0] != "CMD",
		"checks the health too seldom, or hastily":    s.Healthcheck.Interval > time.Minute || s.Healthcheck.Timeout < 5*time.Second,
		"has another volume than the commands around": !strings.Contains(text, "-v "+c.Volumes["data"].Name+":/var/lib/errand"),
		"has another name than the commands around":   !strings.Contains(text, "--network container:"+s.ContainerName+" "),
	} {
		if found {
			t.Errorf("the compose file %s: %+v", problem, s)
		}
	}
}
