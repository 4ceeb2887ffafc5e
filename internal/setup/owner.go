package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/errand-bot/errand/internal/durable"
)

// rootUser is the ID of root.
const rootUser = "0"

// defaultUser returns the user that should run errand: the current one, but for root the user errand if it exists.
func defaultUser(*run) string {
	who, err := user.Current()
	if err != nil {
		return ""
	}
	if who.Uid == rootUser {
		if _, err := user.Lookup("errand"); err == nil {
			return "errand"
		}
	}
	return who.Username
}

// checkUser accepts users that exist. Only root can set up errand for another one.
func checkUser(_ *run, name string) error {
	wanted, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("%q: no such user; create it with `useradd --system --create-home --shell /usr/sbin/nologin %[1]s`", name)
	}
	who, err := user.Current()
	if err == nil && who.Uid != rootUser && who.Uid != wanted.Uid {
		return fmt.Errorf("%q: only root can set up errand for another user", name)
	}
	return nil
}

// handOver gives the files of the setup, and the folder for data, to the user that runs errand.
func (r *run) handOver() error {
	who, err := user.Lookup(r.answer("user"))
	if err != nil {
		return fmt.Errorf("find the user that runs errand: %w", err)
	}
	if os.Geteuid() != 0 || who.Uid == rootUser {
		return nil
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return fmt.Errorf("read the ID of user %s: %w", who.Username, err)
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return fmt.Errorf("read the group of user %s: %w", who.Username, err)
	}
	if err := durable.MkdirAll(r.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("create the folder for data: %w", err)
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("list the files of the setup: %w", err)
	}
	paths := []string{r.cfg.Data, r.dir}
	for _, e := range entries {
		if e.Type().IsRegular() {
			paths = append(paths, filepath.Join(r.dir, e.Name()))
		}
	}
	for _, path := range paths {
		if err := os.Lchown(path, uid, gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give a file of the setup to user %s: %w", who.Username, err)
		}
	}
	return nil
}
