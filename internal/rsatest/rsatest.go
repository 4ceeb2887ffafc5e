// Package rsatest has an RSA key for tests, such as the private key of a simulated GitHub App.
//
// Creating a key takes longer than most tests, and much longer under the race detector, so all tests of a program share one. It is
// for tests only. Start with [Key].
package rsatest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"sync"
)

var key = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // for this size it does not happen
	}
	return key
})

// Key returns a key of 2,048 bits, the same one at each call.
func Key() *rsa.PrivateKey { return key() }

// PEM returns Key in the format of GitHub's download.
func PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key())}))
}
