// Package maven has Maven use the proxy of a run. Maven reads neither HTTPS_PROXY nor, for the password of a proxy, Java's system properties:
// it only reads a settings file. That file holds no secret, because Maven takes the password from the environment.
//
// Start with [Write].
package maven

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"text/template"
)

// Path is the path of the settings below a home directory.
const Path = ".m2/settings.xml"

// PasswordVariable is the environment variable with the password of the proxy that errand gives to a run.
const PasswordVariable = "ERRAND_PROXY_PASSWORD"

const text = `<!-- From errand: Maven does not read HTTPS_PROXY. errand keeps an existing file. -->
<settings>
  <proxies>
    <proxy>
      <id>errand</id>
      <protocol>http</protocol>
      <host>{{xml .Hostname}}</host>
      <port>{{xml .Port}}</port>
      <username>{{xml .User.Username}}</username>
      <password>${env.` + PasswordVariable + `}</password>
      <nonProxyHosts>localhost|127.0.0.1</nonProxyHosts>
    </proxy>
  </proxies>
</settings>
`

// Settings returns Maven's settings for the proxy in an environment, or nil if errand gave it none.
func Settings(env map[string]string) []byte {
	proxy, err := url.Parse(env["HTTPS_PROXY"])
	if env[PasswordVariable] == "" || err != nil || proxy.Port() == "" {
		return nil
	}
	escape := func(s string) (string, error) {
		var b bytes.Buffer
		err := xml.EscapeText(&b, []byte(s))
		return b.String(), err
	}
	var b bytes.Buffer
	if err := template.Must(template.New("settings").Funcs(template.FuncMap{"xml": escape}).Parse(text)).Execute(&b, proxy); err != nil {
		return nil
	}
	return b.Bytes()
}

// Write writes Maven's settings below a home directory, unless the environment has no proxy of errand's or the file exists. Java finds the
// home directory in /etc/passwd and does not read HOME.
func Write(home string, env map[string]string) error {
	settings := Settings(env)
	if settings == nil {
		return nil
	}
	path := filepath.Join(home, Path)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return fmt.Errorf("write Maven's settings: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.Write(settings)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write Maven's settings: %w", err)
	}
	return nil
}
