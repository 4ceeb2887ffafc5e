package server

import (
	"net/http"
	"path/filepath"

	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/provenance"
)

// ProvenanceKeyFile is the file, in the data folder, with the key that signs statements about pull requests.
const ProvenanceKeyFile = "provenance_key"

// provenanceKey reads the key that signs statements, or creates it.
func (s *Server) provenanceKey() (keyfile.Signing, error) {
	return keyfile.ReadSigning(filepath.Join(s.cfg.Data, ProvenanceKeyFile), s.opts.Now())
}

// statements returns the signer of statements about pull requests.
func (s *Server) statements() *provenance.Signer {
	return &provenance.Signer{
		Key: s.provenanceKey, Version: s.opts.Version, PublicURL: s.cfg.PublicURL,
		Redact: func(text string) string {
			clean, _ := s.redact.Redact(text)
			return clean
		},
	}
}

// publicKeys answers with the public keys of this deployment, for everybody.
func (s *Server) publicKeys(w http.ResponseWriter, _ *http.Request) {
	k, err := s.provenanceKey()
	if err == nil {
		var list []byte
		if list, err = provenance.PublishKeys(k); err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "public, max-age=300")
			_, _ = w.Write(append(list, '\n'))
			return
		}
	}
	s.opts.Log.Error().Err(err).Msg("failed to read the provenance key")
	http.Error(w, "The keys cannot be read; the log of errand has the cause.", http.StatusInternalServerError)
}
