// Package roots makes the programs of a VM trust one more authority for TLS certificates, in addition to those that its system trusts: the one
// with which errand answers in place of private registries.
//
// Start with [Install], which writes the files, and [Environment], which tells programs about them.
package roots

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/errand-bot/errand/internal/durable"
)

// A Spec is the input of Install.
type Spec struct {
	// Dir is the folder for the files alone.
	Dir string `json:"dir"`
	// Authority is the additional authority's certificate in PEM.
	Authority []byte `json:"authority"`
}

// The files in the folder: the additional authority alone, and all authorities, in PEM and for Java.
const (
	ownFile  = "errand.pem"
	allFile  = "all.pem"
	javaFile = "all.p12"
)

// javaPassword protects nothing: the file has public certificates only, and Java reads no such file without a password.
const javaPassword = "changeit"

// maxBundle is the maximum size of the system's authorities in bytes; 200 kB are usual.
const maxBundle = 16 << 20

// systemFiles lists where the distributions of Linux keep their authorities in one file.
func systemFiles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
}

// Install writes the files. It replaces the folder, because a run that is over may have changed what is in it.
func Install(spec Spec) error {
	own, err := certificates(spec.Authority)
	if err != nil {
		return fmt.Errorf("read the authority: %w", err)
	}
	system, err := systemBundle()
	if err != nil {
		return err
	}
	all := append(append(append([]byte{}, system...), '\n'), spec.Authority...)
	list, err := certificates(system)
	if err != nil {
		return fmt.Errorf("read the system's authorities: %w", err)
	}
	java, err := pkcs12.Modern.EncodeTrustStore(append(list, own...), javaPassword)
	if err != nil {
		return fmt.Errorf("encode the authorities for Java: %w", err)
	}
	if err := os.RemoveAll(spec.Dir); err != nil {
		return fmt.Errorf("remove the authorities of an earlier run: %w", err)
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of the authorities: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{ownFile, spec.Authority}, {javaFile, java}, {allFile, all}} {
		if err := durable.WriteFile(filepath.Join(spec.Dir, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("write the authorities: %w", err)
		}
	}
	return nil
}

// systemBundle returns the authorities of the system in PEM. It is empty if there are none.
func systemBundle() ([]byte, error) {
	files := systemFiles()
	if own := os.Getenv("SSL_CERT_FILE"); own != "" {
		files = []string{own}
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Size() > maxBundle {
			return nil, fmt.Errorf("%s has more than %d bytes", name, maxBundle)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the system's authorities: %w", err)
		}
		return data, nil
	}
	return nil, nil
}

// certificates parses certificates in PEM. It leaves out those that Go cannot parse, of which old bundles have some.
func certificates(data []byte) (list []*x509.Certificate, err error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
	if len(list) == 0 && len(data) > 0 {
		return nil, errors.New("it contains no certificate")
	}
	return list, nil
}

// Environment returns the variables by which programs find the files in a folder: OpenSSL, Go, curl, Python's requests, pip, Cargo, Node.js
// and Java.
func Environment(dir string) map[string]string {
	all := path.Join(dir, allFile)
	return map[string]string{
		"SSL_CERT_FILE": all, "CURL_CA_BUNDLE": all, "REQUESTS_CA_BUNDLE": all, "PIP_CERT": all, "CARGO_HTTP_CAINFO": all,
		"NODE_EXTRA_CA_CERTS": path.Join(dir, ownFile),
		JavaOptions: "-Djavax.net.ssl.trustStore=" + path.Join(dir, javaFile) + " -Djavax.net.ssl.trustStoreType=PKCS12" +
			" -Djavax.net.ssl.trustStorePassword=" + javaPassword,
	}
}

// JavaOptions is the variable with options of all Java programs, separated by spaces.
const JavaOptions = "JAVA_TOOL_OPTIONS"
