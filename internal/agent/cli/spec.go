package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
)

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// CheckSpec refuses a spec that any agent's command line would misinterpret.
func CheckSpec(s agent.Spec) error {
	for _, dir := range []struct{ name, path string }{{"work", s.WorkDir}, {"home", s.Home}, {"run", s.RunDir}} {
		if !path.IsAbs(dir.path) {
			return fmt.Errorf("the %s directory %q is not absolute", dir.name, dir.path)
		}
	}
	switch {
	case s.Attachments != "" && !path.IsAbs(s.Attachments):
		return fmt.Errorf("the directory of attachments %q is not absolute", s.Attachments)
	case strings.TrimSpace(s.Prompt) == "":
		return errors.New("the prompt is empty")
	case strings.ContainsRune(s.Prompt, 0):
		return errors.New("the prompt contains a zero byte")
	case s.Model == "", strings.HasPrefix(s.Model, "-"):
		return fmt.Errorf("%q is not a model", s.Model)
	case len(s.MCP) > 0 && !json.Valid(s.MCP):
		return errors.New("the MCP configuration is not JSON")
	case len(s.Schema) > 0 && !json.Valid(s.Schema):
		return errors.New("the schema is not JSON")
	case s.MaxTurns < 0 || s.MaxUSD < 0:
		return errors.New("a limit is negative")
	}
	for _, id := range []string{s.Resume, s.Session} {
		if id != "" && !uuidForm.MatchString(id) {
			return fmt.Errorf("the session %q is not a UUID", id)
		}
	}
	return checkShell(s.Shell)
}
