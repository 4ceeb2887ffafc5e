package roots

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

// authority returns a new authority's certificate in PEM.
func authority(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// namesIn returns the names of the certificates.
func namesIn(list []*x509.Certificate) string {
	var names []string
	for _, c := range list {
		names = append(names, c.Subject.CommonName)
	}
	return strings.Join(names, " ")
}

// installed returns the names of the authorities in both files with all of them.
func installed(t *testing.T, dir string) (inPEM, forJava string) {
	t.Helper()
	all, err := os.ReadFile(filepath.Join(dir, allFile))
	if err != nil {
		t.Fatal(err)
	}
	list, err := certificates(all)
	if err != nil {
		t.Fatal(err)
	}
	store, err := os.ReadFile(filepath.Join(dir, javaFile))
	if err != nil {
		t.Fatal(err)
	}
	java, err := pkcs12.DecodeTrustStore(store, javaPassword)
	if err != nil {
		t.Fatal(err)
	}
	return namesIn(list), namesIn(java)
}

// TestInstall: the files hold the system's authorities and the additional one, which a later call replaces.
func TestInstall(t *testing.T) {
	system := filepath.Join(t.TempDir(), "system.pem")
	broken := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	if err := os.WriteFile(system, append([]byte(broken), authority(t, "one")...), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", system)
	dir := filepath.Join(t.TempDir(), "new", "roots")
	for _, name := range []string{"first", "second"} {
		own := authority(t, name)
		for range 2 {
			if err := Install(Spec{Dir: dir, Authority: own}); err != nil {
				t.Fatal(err)
			}
		}
		if inPEM, forJava := installed(t, dir); inPEM != "one "+name || forJava != "one "+name {
			t.Errorf("got %q and, for Java, %q", inPEM, forJava)
		}
		alone, err := os.ReadFile(filepath.Join(dir, ownFile))
		if err != nil || string(alone) != string(own) {
			t.Errorf("alone: %q, %v", alone, err)
		}
	}
}

// TestNoSystem: without authorities of the system the additional one is alone.
func TestNoSystem(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	if err := Install(Spec{Dir: dir, Authority: authority(t, "own")}); err != nil {
		t.Fatal(err)
	}
	if inPEM, forJava := installed(t, dir); inPEM != "own" || forJava != "own" {
		t.Errorf("got %q and, for Java, %q", inPEM, forJava)
	}
}

// TestRefused: what is no authority, and what cannot be a list of authorities, is an error, and nothing is written.
func TestRefused(t *testing.T) {
	huge, directory := filepath.Join(t.TempDir(), "huge"), t.TempDir()
	f, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(maxBundle + 1); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for name, test := range map[string]struct {
		system    string
		authority []byte
	}{
		"no certificate":     {system: "/nothing", authority: []byte("hello")},
		"a huge bundle":      {system: huge, authority: authority(t, "own")},
		"a folder as bundle": {system: directory, authority: authority(t, "own")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SSL_CERT_FILE", test.system)
			dir := filepath.Join(t.TempDir(), "roots")
			if err := Install(Spec{Dir: dir, Authority: test.authority}); err == nil {
				t.Error("it was accepted")
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("files were written")
			}
		})
	}
}

// TestJavaReads: Java's own tool lists the authorities.
func TestJavaReads(t *testing.T) {
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		t.Skip("Java is not installed: whether it reads the authorities is not tried")
	}
	dir := t.TempDir()
	if err := Install(Spec{Dir: dir, Authority: authority(t, "errand registries")}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), keytool, "-list", "-v", "-keystore", filepath.Join(dir, javaFile), "-storepass", javaPassword).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "CN=errand registries") {
		t.Errorf("%v: %s", err, out)
	}
}
