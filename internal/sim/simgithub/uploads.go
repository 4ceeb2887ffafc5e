package simgithub

import (
	"fmt"
	"html"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// upload is a file that a person attached to a text.
type upload struct {
	name    string
	content []byte
	by      int64 // id of the person
	private bool  // of the repository
}

// signatureTime is how long a signed address of an upload is valid.
const signatureTime = 5 * time.Minute

// Upload attaches a file in a repository, as by pasting it into a text field, and returns its address: an image's address can
// be read only with a session, that of another file in a public repository by everybody.
func (p Person) Upload(repo, name string, content []byte) (address string, err error) {
	err = p.do(func(x *session) error {
		r, err := x.repo(repo)
		if err != nil {
			return err
		}
		u := &upload{name: name, content: content, by: x.by.ID, private: r.Private}
		id := uuid.NewString()
		address = p.s.base + "/user-attachments/assets/" + id
		switch path.Ext(name) {
		case ".png", ".jpg", ".gif", ".webp", ".mp4":
		default:
			id = fmt.Sprintf("%d/%s", p.s.newID(), name)
			address = p.s.base + "/user-attachments/files/" + id
		}
		p.s.uploads[id] = u
		return nil
	})
	return address, err
}

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	shownParts  = regexp.MustCompile(`!\[[^\]]*\]\(([^)\s]*)\)|&lt;img (?:[^&]|&#34;)*?src=&#34;([^&]*)&#34;(?:[^&]|&#34;)*?&gt;|https?://[^\s()&<>]+`)
	shownUpload = regexp.MustCompile(`/user-attachments/assets/([0-9a-f-]{36})$`)
)

// rendered returns a text in HTML, with signed addresses of images. It knows of Markdown only images and addresses.
func (s *Sim) rendered(body string) string {
	text := html.EscapeString(htmlComment.ReplaceAllString(body, ""))
	text = shownParts.ReplaceAllStringFunc(text, func(found string) string {
		m := shownParts.FindStringSubmatch(found)
		address := m[1] + m[2]
		if address == "" {
			return fmt.Sprintf(`<a href="%s">%s</a>`, found, found)
		}
		if m := shownUpload.FindStringSubmatch(address); m != nil && strings.HasPrefix(address, s.base) && s.uploads[m[1]] != nil {
			until := strconv.FormatInt(s.cfg.Now().Add(signatureTime).Unix(), 10)
			address = fmt.Sprintf("%s/storage/user/%d/files/%s?until=%s&amp;token=%s", s.base, s.uploads[m[1]].by, m[1], until, s.signature(m[1], until))
		}
		return fmt.Sprintf(`<a target="_blank" href="%s"><img src="%s" style="max-width: 100%%;"></a>`, address, address)
	})
	return `<p dir="auto">` + text + `</p>`
}

func (s *Sim) signature(id, until string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.key.D.String()+id+until)).String()
}

// withHTML adds the rendered texts to an answer if the client asks for them.
func (c *call) withHTML(out any) any {
	if !strings.Contains(c.r.Header.Get("Accept"), "application/vnd.github.full+json") {
		return out
	}
	list, ok := out.([]any)
	if !ok {
		list = []any{out}
	}
	for _, v := range list {
		if o, ok := v.(obj); ok && o["body"] != nil {
			o["body_html"] = c.s.rendered(fmt.Sprint(o["body"]))
		}
	}
	return out
}

// serveUpload serves uploads at their addresses. A request with a token is an error: it was sent to the wrong host.
func (s *Sim) serveUpload(w http.ResponseWriter, r *http.Request) {
	f := s.admit(r, "upload", r.URL.Path)
	if f.before(w, r) {
		return
	}
	if _, ok := credential(r); ok || r.Header.Get("Cookie") != "" {
		http.Error(w, "a download with a token", http.StatusBadRequest)
		return
	}
	id := r.PathValue("id")
	s.mu.Lock()
	u := s.uploads[id]
	until, _ := strconv.ParseInt(r.URL.Query().Get("until"), 10, 64)
	signed := r.URL.Query().Get("token") == s.signature(id, r.URL.Query().Get("until")) && s.cfg.Now().Before(time.Unix(until, 0))
	s.mu.Unlock()
	file := strings.HasPrefix(r.URL.Path, "/user-attachments/files/")
	if u == nil || file && u.private || !file && !signed {
		http.NotFound(w, r)
		return
	}
	if !f.after(w, r) {
		_, _ = w.Write(u.content)
	}
}
