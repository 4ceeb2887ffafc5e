package setup

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/remote"
)

var (
	//go:embed errand.service.tmpl
	serviceText string
	//go:embed errand.socket.tmpl
	socketText string
)

const (
	stateFolder = "/var/lib/errand" // that of StateDirectory
	stopMargin  = 10 * time.Second  // between timing.shutdown and the end by systemd
)

// Units returns the systemd units errand.service and errand.socket for a user, the path of the errand program, and that of a configuration, which
// has to be valid. systemd opens errand's port and keeps it open while errand restarts.
func Units(userName, program, configFile string, cfg config.Config) (service, socket string, err error) {
	stream, err := listenStream(cfg.Listen)
	if err != nil {
		return "", "", err
	}
	hasState := cfg.Data == stateFolder
	used, optional := append([]string{program, configFile, cfg.Data}, slices.Sorted(maps.Values(cfg.SecretFiles()))...), writableFolders(cfg)
	for _, path := range append(used, optional...) {
		switch {
		case !filepath.IsAbs(path):
			return "", "", fmt.Errorf("the path %q cannot be used in a systemd unit: write one that begins with /", path)
		case strings.ContainsAny(path, "\"\\%$\n"):
			return "", "", fmt.Errorf("the path %q cannot be written in a systemd unit", path)
		}
	}
	arg := func(s string) string {
		if strings.ContainsAny(s, " \t'") {
			return `"` + s + `"`
		}
		return s
	}
	data := map[string]any{
		"User": userName, "Program": program, "Config": configFile, "Stream": stream, "State": hasState, "Data": cfg.Data, "Writable": optional,
		"StopSeconds": int((max(cfg.Timing.Shutdown, 0) + stopMargin) / time.Second), "Sandboxes": cfg.Provider == config.ProviderLocal,
		"InHome": isAnyBelow(append(used, optional...), "/home", "/root", "/run/user"), "InTemp": isAnyBelow(append(used, optional...), "/tmp", "/var/tmp"),
	}
	var texts [2]string
	for i, text := range []string{serviceText, socketText} {
		var b bytes.Buffer
		if err := template.Must(template.New("unit").Funcs(template.FuncMap{"arg": arg}).Parse(text)).Execute(&b, data); err != nil {
			return "", "", fmt.Errorf("write the text of a systemd unit: %w", err)
		}
		texts[i] = b.String()
	}
	return texts[0], texts[1], nil
}

// writableFolders returns the folders besides the one for data that errand writes to: for backups, and for logins of subscriptions, which a
// renewal replaces in their folders.
func writableFolders(cfg config.Config) []string {
	list := []string{cfg.Backup.Folder}
	for _, m := range cfg.Models {
		if login := m.Subscription.Login; login != "" {
			list = append(list, filepath.Dir(login))
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(dir string) bool { return dir == "" || dir == cfg.Data })
}

// isAnyBelow reports whether a path is below one of these folders, also by a symbolic link.
func isAnyBelow(paths []string, dirs ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			target = path
		}
		return slices.ContainsFunc(dirs, func(dir string) bool {
			return strings.HasPrefix(filepath.Clean(path)+"/", dir+"/") || strings.HasPrefix(target+"/", dir+"/")
		})
	})
}

// listenStream returns an address to listen on as systemd reads it, which knows no names.
func listenStream(listen string) (string, error) {
	host, service, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("read the address listen, %q: %w", listen, err)
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil {
		return "", fmt.Errorf("read the port of listen, %q: %w", listen, err)
	}
	switch host {
	case "":
		return strconv.Itoa(port), nil
	case "localhost":
		host = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return "", fmt.Errorf("listen is %q: write an IP address, such as 127.0.0.1:%d, because systemd opens no names", listen, port)
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// socketPath is where the unit of the socket is written.
func (r *run) socketPath() string { return strings.TrimSuffix(r.UnitPath, ".service") + ".socket" }

// unitFile is a systemd unit, and where it belongs.
type unitFile struct{ path, text string }

// units returns the systemd units for this installation. The socket is the last one.
func (r *run) units() ([]unitFile, error) {
	service, socket, err := Units(r.answer("user"), r.Program, r.configFile(), r.cfg)
	return []unitFile{{r.UnitPath, service}, {r.socketPath(), socket}}, err
}

// makeWritable creates the folders that the service writes to: the one for data, if the service needs it to start, and the one for backups,
// without which errand runs but makes no backups.
func (r *run) makeWritable() error {
	if _, err := os.Stat(r.cfg.Data); err != nil && r.cfg.Provider != config.ProviderLocal && r.cfg.Data != stateFolder {
		if err := makeFolder(r.cfg.Data); err != nil {
			return fmt.Errorf("create the folder for data, without which the service does not start: %w", err)
		}
	}
	backups := r.cfg.Backup.Folder
	if _, err := os.Stat(backups); backups == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil // what is wrong with an existing folder is said by the checks
	}
	who, err := r.newOwner()
	if err != nil {
		return err
	}
	err = makeFolder(backups)
	if err == nil && who != nil {
		uid, uidErr := strconv.Atoi(who.Uid)
		gid, gidErr := strconv.Atoi(who.Gid)
		err = errors.Join(uidErr, gidErr, os.Lchown(backups, uid, gid))
	}
	if err != nil {
		left := fmt.Sprintf("Create the folder for backups, and restart errand if it runs: `sudo install -d -m 0700 -o %s %s` (%v).", r.answer("user"), remote.Quote(backups), err)
		r.left = append(r.left, left)
		r.say("%s\n", left)
		return nil
	}
	r.say("Created the folder for backups, %s.\n", backups)
	return nil
}
