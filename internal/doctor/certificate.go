package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Certificate is what the running errand knows about the certificate that it gets by ACME.
type Certificate struct {
	Host  string
	Valid time.Time // until when; zero if there is none yet
	Err   error     // why the latest attempt to get one failed
	// Reason is why the latest attempt to renew it failed; empty if it did not, or that is not known.
	Reason string
	Now    func() time.Time
}

// renewalDue is the remaining validity at which a certificate should have been renewed.
const renewalDue = 7 * 24 * time.Hour

// CertificateCheck checks the certificate of the pages and the webhook.
func CertificateCheck(c Certificate) Check {
	return func(context.Context) []Finding {
		f := Finding{
			Check: "certificate", Status: OK, Found: fmt.Sprintf("The certificate for %s is valid until %s.", c.Host, c.Valid.UTC().Format("2006-01-02 15:04 MST")),
		}
		fix := fmt.Sprintf("Let port 443 of %s lead to errand's listen address: `dig +short %[1]s` has to print this host's address, and `curl -v https://%[1]s/healthz` from another "+
			"network has to reach errand. errand tries again every quarter of an hour.", c.Host)
		switch {
		case c.Err != nil:
			f.Status, f.Found = Failed, fmt.Sprintf("No certificate could be obtained for %s: %v", c.Host, c.Err)
			f.Meaning, f.Fix = "Nobody can open the pages, and GitHub cannot deliver webhooks.", fix
		case c.Valid.IsZero():
			f.Status, f.Found = Warning, fmt.Sprintf("There is no certificate for %s yet.", c.Host)
			f.Meaning, f.Fix = "errand is getting one, which takes seconds.", "Run errand doctor again."
		case c.Valid.Sub(c.Now()) < renewalDue:
			f.Status, f.Found = Failed, fmt.Sprintf("The certificate for %s ends at %s, and was not renewed.", c.Host, c.Valid.UTC().Format("2006-01-02 15:04 MST"))
			if c.Reason != "" {
				f.Found = strings.TrimSuffix(f.Found, ".") + ": " + c.Reason
			}
			f.Meaning, f.Fix = "From then on nobody can open the pages, and GitHub cannot deliver webhooks.", fix
		}
		return []Finding{f}
	}
}
