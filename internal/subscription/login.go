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

// Size limits of a login file and of one token, in bytes.
const (
	maxLogin = 64 << 10
	maxToken = 8 << 10
)

// section is the key of the login in Claude Code's file.
const section = "claudeAiOauth"

// A login is the content of a login file. Unknown content is kept.
type login struct {
	Access  string
	Refresh string
	Ends    time.Time // expiry of Access; zero if unknown

	before string // the refresh token that this one replaced
	file   map[string]json.RawMessage
	own    map[string]json.RawMessage // unknown keys of the section
}

// Secrets returns the tokens in a login file, for redaction. Its error wraps [ErrRefused] and states what to do.
func Secrets(path string) ([]string, error) {
	l, err := read(path)
	if err != nil {
		return nil, err
	}
	return []string{l.Access, l.Refresh}, nil
}

// read reads a login. Its error wraps [ErrRefused].
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
		return login{}, fmt.Errorf("%w: %s is not a file", ErrRefused, path)
	case info.Mode().Perm()&0o077 != 0:
		return login{}, fmt.Errorf("%w: other users can read %s; run chmod 600 on it", ErrRefused, path)
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

// parse parses the content of a login file. Its errors continue a sentence that starts with the file name, and quote
// none of the content.
func parse(data []byte) (l login, err error) {
	if len(data) > maxLogin {
		return l, fmt.Errorf("is larger than %d bytes", maxLogin)
	}
	if json.Unmarshal(data, &l.file) != nil {
		return l, errors.New("is not JSON; use Claude Code's file .credentials.json")
	}
	if _, codex := l.file["tokens"]; codex {
		return l, errors.New("is a login of Codex, which errand does not support; configure a key for that provider, or use Claude Code's file .credentials.json")
	}
	var own struct {
		Access  string `json:"accessToken"`
		Refresh string `json:"refreshToken"`
		Ends    int64  `json:"expiresAt"` // milliseconds since the epoch
	}
	if json.Unmarshal(l.file[section], &own) != nil || json.Unmarshal(l.file[section], &l.own) != nil || l.own == nil {
		return l, errors.New("is not a login of Claude Code; log in there and use its file .credentials.json")
	}
	if !isToken(own.Access) || own.Refresh != "" && !isToken(own.Refresh) {
		return l, errors.New("has no valid tokens; log in again")
	}
	l.Access, l.Refresh = own.Access, own.Refresh
	if own.Ends > 0 && own.Ends < 1e15 {
		l.Ends = time.UnixMilli(own.Ends).UTC()
	}
	return l, nil
}

// isToken reports whether s is a valid value for a header.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// encode returns the login in the format of its file.
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

// A place is a reserved new file next to a login, which atomically replaces the login once written. It holds a lock, so
// that one process at a time renews the login.
type place struct {
	path string
	file *os.File
	lock *flock.Flock // lock file next to the login, which stays
}

// newPlace locks the login and reserves disk space for a new one, because a refresh token is invalid once used. It does
// not wait for another process that holds the lock.
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

// write replaces the login. When it returns nil, the new login survives a loss of power.
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

// drop removes an unused reservation and releases the lock. It may be called after write.
func (p *place) drop() {
	_ = p.file.Close()           // already closed after write
	_ = os.Remove(p.file.Name()) // already renamed after write
	_ = p.lock.Close()
}
