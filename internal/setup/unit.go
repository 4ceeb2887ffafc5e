package setup

import (
	"bytes"
	_ "embed"
	"fmt"
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
	writable := slices.DeleteFunc([]string{cfg.Data, cfg.Backup.Folder}, func(dir string) bool { return dir == "" || dir == stateFolder })
	used := append([]string{program, configFile, cfg.Data}, writable...)
	for _, path := range used {
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
		"User": userName, "Program": program, "Config": configFile, "Stream": stream, "State": cfg.Data == stateFolder, "Writable": writable,
		"StopSeconds": int((max(cfg.Timing.Shutdown, 0) + stopMargin) / time.Second), "Sandboxes": cfg.Provider == config.ProviderLocal,
		"InHome": slices.ContainsFunc(used, isInHome),
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

// isInHome reports whether a path is in a folder that ProtectHome hides.
func isInHome(path string) bool {
	return slices.ContainsFunc([]string{"/home/", "/root/", "/run/user/"}, func(home string) bool { return strings.HasPrefix(path, home) })
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

// makeWritable creates the folder for data, if the service needs it to start.
func (r *run) makeWritable() error {
	if r.cfg.Provider == config.ProviderLocal || r.cfg.Data == stateFolder {
		return nil
	}
	if _, err := os.Stat(r.cfg.Data); err == nil {
		return nil
	}
	if err := makeFolder(r.cfg.Data); err != nil {
		return fmt.Errorf("create the folder for data, without which the service does not start: %w", err)
	}
	return nil
}
