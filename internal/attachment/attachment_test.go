package attachment

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	one = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
	two = "1a1b2c3d-4e5f-6789-abcd-ef0123456789"
)

func newClient(t *testing.T, web string) *Client {
	t.Helper()
	c, err := New(web, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFind(t *testing.T) {
	t.Parallel()
	const github, enterprise = "https://github.com", "https://git.example.org:8443"
	for name, tc := range map[string]struct {
		web, text string
		want      []string // ID and address
	}{
		"markdown":             {github, "See ![x](https://github.com/user-attachments/assets/" + one + ").", []string{one + " https://github.com/user-attachments/assets/" + one}},
		"HTML":                 {github, `<img src="https://github.com/user-attachments/assets/` + one + `" alt="x">`, []string{one + " https://github.com/user-attachments/assets/" + one}},
		"at a sentence's end":  {github, "It is https://github.com/user-attachments/assets/" + one + ".", []string{one + " https://github.com/user-attachments/assets/" + one}},
		"of a repository":      {github, "https://github.com/acme/app.x/assets/12/" + one, []string{one + " https://github.com/acme/app.x/assets/12/" + one}},
		"old":                  {github, "https://user-images.githubusercontent.com/1/2-" + one + ".png", []string{one + " https://user-images.githubusercontent.com/1/2-" + one + ".png"}},
		"signed one preferred": {github, "https://github.com/user-attachments/assets/" + one + " https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=a.b", []string{one + " https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=a.b"}},
		"first signed one":     {github, "https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=a https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=b", []string{one + " https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=a"}},
		"in order": {github, "https://github.com/user-attachments/assets/" + two + "\nhttps://github.com/user-attachments/assets/" + one + " https://github.com/user-attachments/assets/" + two,
			[]string{two + " https://github.com/user-attachments/assets/" + two, one + " https://github.com/user-attachments/assets/" + one}},
		"a file":                  {github, "[log](https://github.com/user-attachments/files/12/b%20%2e%2e%5C.log)", []string{"12-b_.._.log https://github.com/user-attachments/files/12/b%20%2e%2e%5C.log"}},
		"file of a repository":    {github, "https://github.com/acme/app/files/12/b.zip", []string{"12-b.zip https://github.com/acme/app/files/12/b.zip"}},
		"file that leaves":        {github, "https://github.com/user-attachments/files/12/..%2f..%2fetc%2fpasswd", nil},
		"another host":            {github, "https://example.org/user-attachments/assets/" + one, nil},
		"host as a prefix":        {github, "https://github.com.example.org/user-attachments/assets/" + one, nil},
		"host as a user":          {github, "https://github.com@example.org/user-attachments/assets/" + one + " https://x@github.com/user-attachments/assets/" + one, nil},
		"another port":            {github, "https://github.com:8443/user-attachments/assets/" + one, nil},
		"plain HTTP":              {github, "http://github.com/user-attachments/assets/" + one, nil},
		"another page":            {github, "https://github.com/login?x=/user-attachments/assets/" + one + " https://github.com/acme/app/raw/main/x.png", nil},
		"no UUID":                 {github, "https://github.com/user-attachments/assets/x https://github.com/user-attachments/assets/" + strings.ToUpper(one), nil},
		"a bucket":                {github, "https://github-production-user-asset-6210df.s3.amazonaws.com/1/2.png", nil},
		"enterprise":              {enterprise, "https://git.example.org:8443/user-attachments/assets/" + one, []string{one + " https://git.example.org:8443/user-attachments/assets/" + one}},
		"enterprise, storage":     {enterprise, "https://git.example.org:8443/storage/user/3/files/" + one + "?token=x", []string{one + " https://git.example.org:8443/storage/user/3/files/" + one + "?token=x"}},
		"enterprise, subdomain":   {enterprise, "https://media.git.example.org:8443/user/3/files/" + one, []string{one + " https://media.git.example.org:8443/user/3/files/" + one}},
		"enterprise, common form": {enterprise, "https://github.com/user-attachments/assets/" + one, []string{one + " https://github.com/user-attachments/assets/" + one}},
		"enterprise, common form and own": {enterprise, "https://github.com/user-attachments/assets/" + one + " https://git.example.org:8443/user-attachments/assets/" + one,
			[]string{one + " https://git.example.org:8443/user-attachments/assets/" + one}},
		"enterprise, GitHub's own hosts": {enterprise, "https://private-user-images.githubusercontent.com/1/2-" + one + ".png https://github.com/user-attachments/files/12/b.zip", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, ref := range newClient(t, tc.web).Find(tc.text) {
				got = append(got, ref.ID+" "+ref.URL)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("attachments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	for _, web := range []string{"", "github.com", "ssh://github.com", "https://", "https://[", "file:///etc/passwd"} {
		if _, err := New(web, nil); err == nil {
			t.Errorf("%q was accepted", web)
		}
	}
}

// FuzzFind checks that every attachment found in a text has an address at one of GitHub's hosts, and an ID that is a safe file name.
func FuzzFind(f *testing.F) {
	for _, text := range []string{
		"![x](https://github.com/user-attachments/assets/" + one + ")", "https://github.com/user-attachments/files/12/%2e%2e", "https://github.com/user-attachments/files/1/.b",
		"https://github.com\\@example.org/user-attachments/assets/" + one, "https://github.com%2eexample.org/user-attachments/assets/" + one,
		"<img src='https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=" + strings.Repeat("x", 9000) + "'>",
		"https://GITHUB.com/user-attachments/assets/" + one + "#https://evil.example/", strings.Repeat("https://github.com/user-attachments/files/1/a ", 200),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, ref := range newClient(t, "https://github.com").Find(text) {
			u, err := url.Parse(ref.URL)
			if err != nil || u.Scheme != "https" || u.User != nil {
				t.Fatalf("address %q: %v", ref.URL, err)
			}
			switch strings.ToLower(u.Host) {
			case "github.com", "user-images.githubusercontent.com", "private-user-images.githubusercontent.com":
			default:
				t.Fatalf("host %q", u.Host)
			}
			if ref.ID == "" || len(ref.ID) > 100 || strings.HasPrefix(ref.ID, ".") || unsafeInName.MatchString(ref.ID) {
				t.Fatalf("ID %q", ref.ID)
			}
			if seen[ref.ID] {
				t.Fatalf("ID %q is returned twice", ref.ID)
			}
			seen[ref.ID] = true
		}
		if len(seen) > maxRefs {
			t.Fatalf("%d attachments", len(seen))
		}
	})
}
