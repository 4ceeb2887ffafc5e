package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/errand-bot/errand/internal/remote"
)

// exposed returns that every user of the host has access to a file or folder. Only what belongs to errand's user can be corrected
// safely: errand reads a file of another user perhaps just because everybody can, and other programs may use it too.
func (h Host) exposed(check, path string, info fs.FileInfo) []Finding {
	mode := info.Mode().Perm()
	if mode&0o007 == 0 || !info.Mode().IsRegular() && !info.IsDir() { // a device or a pipe holds nothing
		return nil
	}
	f := Finding{
		Check: check, Status: Warning, Found: fmt.Sprintf("Every user of this host has access to %s (mode %04o).", path, mode),
		Meaning: "Other users and programs can read errand's secrets.",
		Fix:     fmt.Sprintf("`sudo chown %s %s && sudo chmod 0600 %[2]s`, if no other program uses the file.", h.account(), remote.Quote(path)),
	}
	if info.IsDir() {
		f.Fix = fmt.Sprintf("`sudo chown %s %s && sudo chmod 0700 %[2]s`.", h.account(), remote.Quote(path))
	}
	if h.own(path) {
		f.Chmod = &Chmod{Path: path, Mode: mode&^0o077 | ownersMode(info)}
		f.Fix = fmt.Sprintf("`chmod %04o %s`, or run errand doctor with --fix.", f.Chmod.Mode, remote.Quote(path))
	}
	return []Finding{f}
}

// user returns the user who runs errand: this process's user, or the owner of the data folder if root examines it.
func (h Host) user() int {
	user := os.Geteuid()
	if data, err := os.Stat(h.Data); err == nil && user == 0 {
		user, _ = owner(data)
	}
	return user
}

// account returns the user who runs errand as the argument of a command.
func (h Host) account() string {
	id := strconv.Itoa(h.user())
	if who, err := user.LookupId(id); err == nil {
		return who.Username
	}
	return id
}

// ownNames are errand's files and folders in the data folder. Others there are not errand's, such as lost+found.
func ownNames() []string {
	return slices.Concat(secretNames(), []string{"certificates", "changesets", "transcripts", "sleeps", "attachments", "egress"})
}

// secretNames are errand's own files of secrets in the data folder.
func secretNames() []string {
	return []string{"errand.db", "client_key", "tether_key", "provenance_key", "registry_key", "host_keys_secret"}
}

// unusable returns which of errand's own files it cannot use. A command that root ran may have left them.
func (h Host) unusable() []Finding {
	for _, name := range ownNames() {
		path := filepath.Join(h.Data, name)
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue // one that is not there yet, or a link, which is the operator's
		}
		if f := h.closed(path, info); f != nil {
			return []Finding{*f}
		}
	}
	return nil
}

// closed returns that errand's user cannot read and write a file or folder of errand's, or nil. It examines the mode, because root can access
// everything. Another user's file is accepted if this process is errand's user and has access.
func (h Host) closed(path string, info fs.FileInfo) *Finding {
	want, id := ownersMode(info), h.user()
	uid, _ := owner(info)
	mode := info.Mode().Perm()
	if id == 0 || uid == id && mode&want == want || uid != id && os.Geteuid() == id && accessible(path, info.IsDir()) {
		return nil
	}
	f := &Finding{
		Check: "host.data", Status: Failed, Found: fmt.Sprintf("%s belongs to another user (%d) than the one who runs errand, %s.", path, uid, h.account()),
		Meaning: "errand does not start, or cannot store webhooks and tasks.", Fix: fmt.Sprintf("`sudo chown -R %s %s`.", h.account(), remote.Quote(h.Data)),
	}
	if os.Geteuid() == id { // which need not be errand's user
		f.Found = fmt.Sprintf("%s belongs to another user (%d) than the one who runs this, %s, who has no access.", path, uid, h.account())
		f.Fix = fmt.Sprintf("If errand runs as user %d, run this as that user: `sudo -u '#%[1]d' errand doctor`. If it runs as %s: `sudo chown -R %[2]s %s`.", uid, h.account(), remote.Quote(h.Data))
	}
	if uid == id && h.own(path) {
		f.Found = fmt.Sprintf("errand's user cannot read and write %s (mode %04o).", path, mode)
		f.Chmod = &Chmod{Path: path, Mode: mode&^0o077 | want}
		f.Fix = fmt.Sprintf("`chmod %04o %s`, or run errand doctor with --fix.", f.Chmod.Mode, remote.Quote(path))
	}
	return f
}

// ownersMode returns what the owner of a file or a folder needs to be able to do.
func ownersMode(info fs.FileInfo) fs.FileMode {
	if info.IsDir() {
		return 0o700
	}
	return 0o600
}

// own reports whether a path is a file with this one name, or a folder, of errand's user. A symbolic link is not.
func (h Host) own(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	uid, links := owner(info)
	return uid == h.user() && (info.IsDir() || info.Mode().IsRegular() && links == 1)
}

// FixModes revokes other users' access to the data folder and to secret files that errand's user owns, gives that user access to them, and returns the
// changes.
func (h Host) FixModes() ([]Chmod, error) {
	var done []Chmod
	for _, f := range append(h.folder(), h.modes()...) {
		if f.Chmod == nil {
			continue
		}
		if err := h.chmod(*f.Chmod); err != nil {
			return done, fmt.Errorf("correct the mode of %s: %w", f.Chmod.Path, err)
		}
		done = append(done, *f.Chmod)
	}
	return done, nil
}

// chmod changes the mode of the file that is at a path now, unless it was replaced by one that is not errand's own.
func (h Host) chmod(c Chmod) error {
	file, err := os.OpenFile(c.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) && h.own(c.Path) && os.Geteuid() == h.user() {
		return os.Chmod(c.Path, c.Mode) // what this user cannot open; another user's file is refused by the system
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	opened, err := file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(c.Path); err != nil || !h.own(c.Path) || !os.SameFile(there, opened) {
		return errors.New("the file was replaced meanwhile")
	}
	return file.Chmod(c.Mode)
}

// existing returns the nearest folder above a path, or the path itself, that exists.
func existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// modes checks whether other users can read secrets.
func (h Host) modes() []Finding {
	const check = "host.secrets"
	files := maps.Clone(h.Secrets)
	if files == nil {
		files = map[string]string{}
	}
	for _, own := range secretNames() {
		files[filepath.Join("data", own)] = filepath.Join(h.Data, own)
	}
	var list []Finding
	for _, key := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(files[key])
		switch {
		case errors.Is(err, fs.ErrNotExist): // an own file that is not there yet; loading the configuration has read the others
		case err != nil:
			list = append(list, Finding{Check: check, Status: Skipped, Found: fmt.Sprintf("%s: %v", key, err)})
		default:
			list = append(list, h.exposed(check, files[key], info)...)
		}
	}
	if len(list) == 0 {
		list = append(list, Finding{Check: check, Status: OK, Found: "Only errand's user and group can read its secrets."})
	}
	return list
}
