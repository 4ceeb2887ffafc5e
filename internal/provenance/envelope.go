package provenance

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	attestation "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errand-bot/errand/internal/comment"
)

// payloadType is that of in-toto statements in JSON.
const payloadType = "application/vnd.in-toto+json"

// maxEnvelope is the maximum length of an envelope that is read, in bytes: GitHub's comments are not longer.
const maxEnvelope = 64 << 10

// Describe returns the description of a deployment's key for statements.
func Describe(version, keys string, public ed25519.PublicKey) (Deployment, error) {
	id, err := dsse.SHA256KeyID(public)
	if err != nil {
		return Deployment{}, fmt.Errorf("identify the signing key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return Deployment{}, fmt.Errorf("describe the signing key: %w", err)
	}
	return Deployment{Version: version, KeyID: id, PublicKey: base64.StdEncoding.EncodeToString(der), Keys: keys}, nil
}

// ErrTooLong is the error of [Sign] for a statement that does not fit into a comment, although its lists were shortened.
var ErrTooLong = errors.New("the statement is too long")

// Sign returns the envelope, as one line of JSON, of the statement with a predicate. The statement's subject is the head that was
// published last.
func Sign(ctx context.Context, p Predicate, private ed25519.PrivateKey) ([]byte, error) {
	if p.head() == nil {
		return nil, errors.New("sign a statement: nothing was published")
	}
	payload, err := encode(p)
	if err != nil {
		return nil, err
	}
	if len(payload) > maxPayload {
		return nil, fmt.Errorf("sign a statement: %w: it has %d bytes, and the maximum is %d", ErrTooLong, len(payload), maxPayload)
	}
	public, _ := private.Public().(ed25519.PublicKey)
	key, err := keyOf(p.Deployment.KeyID, public, private)
	if err != nil {
		return nil, err
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return nil, fmt.Errorf("sign a statement: %w", err)
	}
	envelope, err := signer.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("sign a statement: %w", err)
	}
	return json.Marshal(envelope)
}

func keyOf(id string, public ed25519.PublicKey, private ed25519.PrivateKey) (*signerverifier.ED25519SignerVerifier, error) {
	key, err := signerverifier.NewED25519SignerVerifierFromSSLibKey(&signerverifier.SSLibKey{
		KeyID: id, KeyType: signerverifier.ED25519KeyType,
		KeyVal: signerverifier.KeyVal{Public: hex.EncodeToString(public), Private: hex.EncodeToString(private)},
	})
	if err != nil {
		return nil, fmt.Errorf("use a key: %w", err)
	}
	return key, nil
}

// encode returns the statement as JSON. Equal predicates have equal statements.
func encode(p Predicate) ([]byte, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the predicate: %w", err)
	}
	var fields structpb.Struct
	if err := protojson.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("encode the predicate: %w", err)
	}
	last := p.head()
	s := &attestation.Statement{
		Type: attestation.StatementTypeUri,
		Subject: []*attestation.ResourceDescriptor{{
			Name: fmt.Sprintf("%s#%d", p.PullRequest.Repository, p.PullRequest.Number), Digest: map[string]string{"gitCommit": last.Head, "gitTree": last.Tree},
		}},
		PredicateType: PredicateType,
		Predicate:     &fields,
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("make a statement: %w", err)
	}
	out, err := protojson.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a statement: %w", err)
	}
	var compact bytes.Buffer // protojson varies its spaces
	if err := json.Compact(&compact, out); err != nil {
		return nil, fmt.Errorf("encode a statement: %w", err)
	}
	return compact.Bytes(), nil
}

// fence matches the code block with the envelope in a comment.
var fence = regexp.MustCompile("(?s)\n```json\n(\\{[^`]*\\})\n```\n")

// markerKey matches the key in the marker of a comment with a statement: the number of the task's life, and that of the pull request.
var markerKey = regexp.MustCompile(`^[0-9]+\.provenance-[0-9]+$`)

// Find returns the envelope in the text of a comment. It returns false for a comment without one.
func Find(body string) (*dsse.Envelope, bool) {
	if len(body) > 4*maxEnvelope {
		return nil, false
	}
	key, ok := comment.FindMarker(body)
	if !ok || !markerKey.MatchString(key) {
		return nil, false
	}
	found := fence.FindAllStringSubmatch(strings.ReplaceAll(body, "\r\n", "\n"), 2)
	if len(found) != 1 {
		return nil, false
	}
	var e dsse.Envelope
	if err := strictJSON([]byte(found[0][1]), &e); err != nil {
		return nil, false
	}
	return &e, true
}

// strictJSON decodes one value, and refuses unknown fields and anything behind it.
func strictJSON(data []byte, out any) error {
	if len(data) > maxEnvelope {
		return errors.New("it is too long")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is more than one value")
	}
	return nil
}

// read returns the predicate of an envelope whose signature has not been checked, and its payload.
func read(e *dsse.Envelope) (Predicate, error) {
	var p Predicate
	if e.PayloadType != payloadType {
		return p, fmt.Errorf("its payload type is %q", cut(e.PayloadType, 100))
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return p, err
	}
	var s attestation.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		return p, errors.New("its payload is not an in-toto statement")
	}
	if err := s.Validate(); err != nil {
		return p, err
	}
	if s.GetPredicateType() != PredicateType {
		return p, fmt.Errorf("its predicate type is %q, which this version of errand does not know", cut(s.GetPredicateType(), 100))
	}
	raw, err := protojson.Marshal(s.GetPredicate())
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, errors.New("its predicate does not have the form of its type")
	}
	last := p.head()
	if last == nil {
		return p, errors.New("it names no publication")
	}
	if d := s.GetSubject()[0].GetDigest(); len(s.GetSubject()) != 1 || d["gitCommit"] != last.Head || d["gitTree"] != last.Tree {
		return p, errors.New("its subject is not the head of its last publication")
	}
	return p, nil
}
