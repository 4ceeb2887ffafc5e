package provenance

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/errand-bot/errand/internal/keyfile"
)

// fixedSigner signs with the same key in each of the processes that fuzz, so that what one signed is valid in the others.
func fixedSigner() *Signer {
	k := keyfile.Signing{Private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), Created: day1}
	return &Signer{Key: func() (keyfile.Signing, error) { return k, nil }, Version: "v1", PublicURL: "https://errand.example/", Redact: plain}
}

// FuzzFindStatement: a comment by anybody is read without a fault, within its size; what is not signed is never accepted.
func FuzzFindStatement(f *testing.F) {
	s := fixedSigner()
	made, err := s.State(f.Context(), sample(1, 2))
	if err != nil {
		f.Fatal(err)
	}
	k, err := s.Key()
	if err != nil {
		f.Fatal(err)
	}
	published, err := PublishKeys(k)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := ParseKeys(published)
	if err != nil {
		f.Fatal(err)
	}
	frame := func(envelope string) string {
		return "**Provenance.**\n\n```json\n" + envelope + "\n```\n\n</details>\n\n<!-- errand:1.provenance-8 -->"
	}
	for _, envelope := range []string{
		string(made.Envelope), strings.Replace(string(made.Envelope), `"sig":"`, `"sig":"A`, 1), `{"payloadType":"x","payload":"","signatures":[]}`, `{}`,
		`{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":"","sig":""},{"keyid":"","sig":""}]}`, "{\"a\":" + strings.Repeat("[", 5000) + "}",
	} {
		f.Add(frame(envelope))
	}
	f.Add("")
	f.Add("```json\n{}\n```\n```json\n{}\n```\n<!-- errand:1.provenance-8 -->")
	original, _ := Find(frame(string(made.Envelope)))
	f.Fuzz(func(t *testing.T, body string) {
		e, ok := Find(body)
		if !ok {
			return
		}
		_, _ = read(e)
		if signedBy(t.Context(), e, keys) == nil {
			return
		}
		signed, err := e.DecodeB64Payload()
		want, _ := original.DecodeB64Payload()
		if err != nil || e.PayloadType != original.PayloadType || string(signed) != string(want) {
			t.Errorf("accepted a payload that was never signed: %q", signed)
		}
	})
}

// FuzzReadStatement: any payload is read as a statement or refused.
func FuzzReadStatement(f *testing.F) {
	made, err := fixedSigner().State(f.Context(), sample(2, 2))
	if err != nil {
		f.Fatal(err)
	}
	var e dsse.Envelope
	if err := json.Unmarshal(made.Envelope, &e); err != nil {
		f.Fatal(err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x","digest":{"gitCommit":"a"}}],"predicateType":"` + PredicateType + `","predicate":{"publications":[{}]}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		e := dsse.Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload), Signatures: []dsse.Signature{{}}}
		p, err := read(&e)
		if err == nil && len(p.Publications) == 0 {
			t.Error("accepted a statement about nothing")
		}
		_ = p.Summary()
	})
}

// FuzzParseKeys: a file with keys is read or refused; an ID is that of its key, whatever the file says.
func FuzzParseKeys(f *testing.F) {
	k, err := fixedSigner().Key()
	if err != nil {
		f.Fatal(err)
	}
	published, err := PublishKeys(k)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(published)
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"))
	f.Add([]byte(`{"keys":[{"keyId":"x","publicKey":"y"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseKeys(data)
		if err == nil && len(list) == 0 {
			t.Error("accepted a file without keys")
		}
		for _, k := range list {
			if id, err := dsse.SHA256KeyID(k.Public); err != nil || id != k.ID {
				t.Errorf("got ID %q for a key with %q, %v", k.ID, id, err)
			}
		}
	})
}
