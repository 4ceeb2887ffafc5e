package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/egress"
)

// RegistryCheck checks whether private registries answer and accept errand's credentials. try returns the result by the registry's name.
func RegistryCheck(try func(context.Context) map[string]error) Check {
	return func(ctx context.Context) (list []Finding) {
		tried := try(ctx)
		for _, name := range slices.Sorted(maps.Keys(tried)) {
			f := Finding{Check: "registries." + name, Status: OK, Found: "The registry answers, and does not refuse the credential."}
			if err := tried[name]; err != nil {
				f.Status, f.Found, f.Meaning = Failed, err.Error()+".", "Set-up, agents and checks that need its packages fail."
				f.Fix = fmt.Sprintf("Check registries.%s.url, DNS, the firewall and the registry's certificate with `curl -v` on this host.", name)
				if errors.Is(err, egress.ErrForbidden) {
					f.Status, f.Meaning = Warning, "The token may not read there, or nobody may read this address itself."
					f.Fix = fmt.Sprintf("Download a package with the token of registries.%s on this host. If that fails too, create a token that can read there.", name)
				}
				if errors.Is(err, egress.ErrCredentialRefused) {
					f.Fix = fmt.Sprintf("Create a token at the registry that can read there, put it in the file of registries.%s.token, and restart errand.", name)
				}
			}
			list = append(list, f)
		}
		return list
	}
}
