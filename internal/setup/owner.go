package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/errand-bot/errand/internal/agent/programs"
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

// newOwner returns the user to whom root gives the files of the setup at its end, or nil if their owner stays the same.
func (r *run) newOwner() (*user.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	who, err := user.Lookup(r.answer("user"))
	if err != nil {
		return nil, fmt.Errorf("find the user that runs errand: %w", err)
	}
	if who.Uid == rootUser {
		return nil, nil
	}
	return who, nil
}

// handOver gives the files that the setup wrote, the agents' programs, and the folder for data, to the user that runs errand. It is the
// last thing that a setup does with files, because root trusts nothing that another user can change.
func (r *run) handOver() error {
	if r.handed || !r.loaded { // without a configuration, the setup goes on as the same user
		return nil
	}
	who, err := r.newOwner()
	if who == nil {
		return err
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return fmt.Errorf("read the ID of user %s: %w", who.Username, err)
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return fmt.Errorf("read the group of user %s: %w", who.Username, err)
	}
	if err := r.checkFolders(who.Username, who.Uid, r.cfg.Data); err != nil {
		return err
	}
	if err := makeFolder(r.cfg.Data); err != nil {
		return fmt.Errorf("create the folder for data: %w", err)
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("list the files of the setup: %w", err)
	}
	paths := []string{r.cfg.Data}
	for _, e := range entries {
		if e.Type().IsRegular() && isOwn(e.Name()) {
			paths = append(paths, r.path(e.Name()))
		}
	}
	installed, err := below(r.path(programsName))
	if err != nil {
		return fmt.Errorf("list the agents' programs: %w", err)
	}
	for _, path := range append(append(paths, installed...), r.dir) {
		if err := os.Lchown(path, uid, gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give a file of the setup to user %s: %w", who.Username, err)
		}
	}
	r.handed = true
	return nil
}

// below returns a folder and all that is in it, or nothing if it does not exist.
func below(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return paths, err
}

// checkOwner makes sure that root trusts no folder, configuration or progress that another user can change.
func (r *run) checkOwner() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, path := range []string{r.dir, r.configFile(), r.path(progressFile), r.path(programsName), programs.Bin(r.path(programsName))} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the owner of a file of the setup: %w", err)
		}
		id := owner(info)
		if id == rootUser {
			continue
		}
		name := "#" + id
		if who, err := user.LookupId(id); err == nil {
			name = who.Username
		}
		return fmt.Errorf("%s belongs to %s: run this as that user: `sudo -u %[2]s errand setup --dir %s`", path, name, r.dir)
	}
	return nil
}

// checkFoldersEarly makes the check of handOver as soon as the folder for data is known, before anything is created on GitHub. While nobody has
// chosen the user that runs errand, a folder of any user but root may be that user's.
func (r *run) checkFoldersEarly() error {
	if os.Geteuid() != 0 {
		return nil
	}
	data := r.answer("data")
	if r.loaded {
		data = r.cfg.Data
	}
	name := r.answer("user")
	who, err := user.Lookup(name)
	if err != nil || who.Uid == rootUser {
		return nil // the question checks the name, and root needs no folder of its own
	}
	uid := who.Uid
	if _, chosen := r.lookup("user"); !chosen && r.front.interactive() {
		if info, err := os.Lstat(data); err == nil && owner(info) != rootUser {
			uid = owner(info)
		}
	}
	return r.checkFolders(name, uid, data)
}

// checkFolders checks that the folders of the setup may be given to a user.
func (r *run) checkFolders(name, uid, data string) error {
	for _, dir := range []string{r.dir, data} {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the owner of a folder: %w", err)
		}
		if owner(info) == uid {
			continue
		}
		foreign := filepath.Base(dir) // not a folder, or a symbolic link
		if info.IsDir() {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return fmt.Errorf("list the files of a folder: %w", err)
			}
			foreign = firstForeign(dir, data, entries)
		}
		if foreign != "" {
			return fmt.Errorf("%s cannot be given to user %s, because of %q there, which is not from errand setup: choose a folder of errand's own, "+
				"or, if this is one, run `chown -R %[2]s: %[1]s`", dir, name, foreign)
		}
	}
	return nil
}

// firstForeign returns the first entry of a folder that the setup did not write, or "" if the folder may be given to another user.
func firstForeign(dir, data string, entries []fs.DirEntry) string {
	for _, e := range entries {
		isData := e.IsDir() && filepath.Join(dir, e.Name()) == filepath.Clean(data)
		isPrograms := e.IsDir() && e.Name() == programsName
		if !isData && !isPrograms && !(e.Type().IsRegular() && isOwn(e.Name())) {
			return e.Name()
		}
	}
	return ""
}

// isOwn reports whether the setup writes files of this name.
func isOwn(name string) bool {
	isSecret := slices.ContainsFunc(Questions(), func(q Question) bool { return q.file != "" && q.file == name })
	isOther := strings.HasPrefix(name, durable.TempPrefix) || slices.Contains([]string{"config.yml", progressFile, lockName, reserveName, "admin-token", "client-secret"}, name)
	if i := strings.LastIndex(strings.TrimSuffix(name, ".old"), "."); i > 0 && strings.HasSuffix(name, ".old") {
		return isOwn(name[:i]) // what keepOld keeps
	}
	return isSecret || isOther
}

// owner returns the ID of the user to whom a file belongs.
func owner(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(stat.Uid), 10)
	}
	return ""
}
