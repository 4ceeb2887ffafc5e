package subscription

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/errand-bot/errand/internal/durable"
)

// maxLogin bounds a login's file, maxToken one of its tokens, in bytes.
const (
	maxLogin = 64 << 10
	maxToken = 8 << 10
)

// section is where in its file Claude Code keeps its login.
const section = "claudeAiOauth"

// login is what a file holds. What else stands in there is kept as it is.
type login struct {
	Access  string
	Refresh string
	Ends    time.Time // of Access; zero if nobody knows

	before string // the token for renewals that this one took the place of
	file   map[string]json.RawMessage
	own    map[string]json.RawMessage // of the section
}

// Secrets returns the tokens in a file, for redaction, and what is wrong with it, in words that say what to do. The
// error is ErrRefused.
func Secrets(path string) ([]string, error) {
	l, err := read(path)
	if err != nil {
		return nil, err
	}
	return []string{l.Access, l.Refresh}, nil
}

// read reads a login. The error is ErrRefused.
func read(path string) (login, error) {
	f, err := os.Open(path)
	if err != nil {
		return login{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return login{}, fmt.Errorf("%w: %w", ErrRefused, err)
	case !info.Mode().IsRegular():
		return login{}, fmt.Errorf("%w: %s is no file", ErrRefused, path)
	case info.Mode().Perm()&0o077 != 0:
		return login{}, fmt.Errorf("%w: others than errand may read %s; close it with chmod 600", ErrRefused, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLogin+1))
	if err != nil {
		return login{}, fmt.Errorf("%w: read %s: %w", ErrRefused, path, err)
	}
	l, err := parse(data)
	if err != nil {
		return login{}, fmt.Errorf("%w: %s %w", ErrRefused, path, err)
	}
	return l, nil
}

// parse reads what a file holds. Errors go on where the file's name ends, and quote nothing of it.
func parse(data []byte) (l login, err error) {
	if len(data) > maxLogin {
		return l, fmt.Errorf("is larger than %d bytes", maxLogin)
	}
	if json.Unmarshal(data, &l.file) != nil {
		return l, errors.New("is no JSON; take the file .credentials.json of Claude Code")
	}
	if _, codex := l.file["tokens"]; codex {
		return l, errors.New("is a login of Codex, which errand does not use; write a key for that provider, or take the file .credentials.json of Claude Code")
	}
	var own struct {
		Access  string `json:"accessToken"`
		Refresh string `json:"refreshToken"`
		Ends    int64  `json:"expiresAt"` // in milliseconds
	}
	if json.Unmarshal(l.file[section], &own) != nil || json.Unmarshal(l.file[section], &l.own) != nil || l.own == nil {
		return l, errors.New("is no login of Claude Code; log in there, and take its file .credentials.json")
	}
	if !isToken(own.Access) || own.Refresh != "" && !isToken(own.Refresh) {
		return l, errors.New("has no tokens as a header can carry them; log in again")
	}
	l.Access, l.Refresh = own.Access, own.Refresh
	if own.Ends > 0 && own.Ends < 1e15 {
		l.Ends = time.UnixMilli(own.Ends).UTC()
	}
	return l, nil
}

// isToken reports whether a header can carry it.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// encode writes a login in the form of its file.
func (l login) encode() ([]byte, error) {
	file, own := map[string]any{}, map[string]any{}
	for key, value := range l.file {
		file[key] = value
	}
	for key, value := range l.own {
		own[key] = value
	}
	own["accessToken"], own["refreshToken"] = l.Access, l.Refresh
	delete(own, "expiresAt")
	if !l.Ends.IsZero() {
		own["expiresAt"] = l.Ends.UnixMilli()
	}
	file[section] = own
	return json.Marshal(file)
}

// place is a new file beside a login's, which takes its place when it is on disk, and the right to write one: of all
// processes, one at a time has it.
type place struct {
	path string
	file *os.File
	lock *flock.Flock // of a file beside the login, which stays
}

// newPlace makes room, which is taken on the disk at once: a token for renewals is spent when it is used. It does not wait for
// another process that renews the same login.
func newPlace(path string) (*place, error) {
	p := &place{path: path, lock: flock.New(path+".lock", flock.SetPermissions(0o600))}
	mine, err := p.lock.TryLock()
	switch {
	case err != nil:
		return nil, err
	case !mine:
		return nil, errors.Join(fmt.Errorf("another process is about to write %s", path), p.lock.Close())
	}
	if p.file, err = os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
		return nil, errors.Join(err, p.lock.Close())
	}
	if _, err := p.file.Write(make([]byte, maxLogin)); err != nil {
		p.drop()
		return nil, err
	}
	return p, nil
}

// write writes a login and lets it take the old one's place. When it returns nil, a loss of power does not lose it.
func (p *place) write(l login) error {
	data, err := l.encode()
	if err != nil {
		return err
	}
	if _, err := p.file.WriteAt(data, 0); err != nil {
		return err
	}
	if err := p.file.Truncate(int64(len(data))); err != nil {
		return err
	}
	if err := p.file.Chmod(0o600); err != nil {
		return err
	}
	return durable.Place(p.file, p.path)
}

// drop removes what was not written, and lets others write. It may be called after write.
func (p *place) drop() {
	_ = p.file.Close()           // closed before, if it was written
	_ = os.Remove(p.file.Name()) // likewise gone
	_ = p.lock.Close()
}
