package egress

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
)

// errHoldsSecret says that an answer contains the credential, such as one of a registry that writes a client's settings.
var errHoldsSecret = errors.New("it contains the credential")

// secrets returns the forms of the credential that an answer must not contain: as it is sent, and the token and name:token of a password alone
// and in base64, without the padding.
func (r Registry) secrets() (list [][]byte) {
	add := func(text string) {
		list = append(list, []byte(text), []byte(strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text)), "=")))
	}
	scheme, token, found := strings.Cut(r.Value, " ")
	if !found {
		token = r.Value
	}
	if plain, err := base64.StdEncoding.DecodeString(token); found && scheme == "Basic" && err == nil {
		_, password, _ := strings.Cut(string(plain), ":")
		add(password)
		token = string(plain)
	}
	add(token)
	return list
}

func holdsSecret(data []byte, secrets [][]byte) bool {
	for _, s := range secrets {
		if bytes.Contains(data, s) {
			return true
		}
	}
	return false
}

// copyWithout copies an answer to a VM. It stops before a secret: as many bytes are held back as could be the beginning of one.
func copyWithout(w http.ResponseWriter, from io.Reader, secrets [][]byte) error {
	longest := 1
	for _, s := range secrets {
		longest = max(longest, len(s))
	}
	flush := http.NewResponseController(w)
	chunk, held := make([]byte, 32<<10), []byte(nil)
	for {
		n, err := from.Read(chunk)
		held = append(held, chunk[:n]...)
		if holdsSecret(held, secrets) {
			return errHoldsSecret
		}
		ready := len(held) - (longest - 1)
		if err != nil {
			ready = len(held)
		}
		if ready > 0 {
			if _, err := w.Write(held[:ready]); err != nil {
				return err
			}
			_ = flush.Flush() // an error is that of the next write
			held = append(held[:0], held[ready:]...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
