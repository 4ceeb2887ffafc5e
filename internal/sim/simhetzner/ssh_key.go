package simhetzner

import (
	"net/http"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"golang.org/x/crypto/ssh"
)

type sshKey struct {
	id          int64
	name        string
	public      string
	fingerprint string
	labels      map[string]string
	created     time.Time
}

func (k *sshKey) about() (int64, string, time.Time, map[string]string) {
	return k.id, k.name, k.created, k.labels
}

func (k *sshKey) wire() any {
	return schema.SSHKey{
		ID:          k.id,
		Name:        k.name,
		Fingerprint: k.fingerprint,
		PublicKey:   k.public,
		Labels:      k.labels,
		Created:     k.created.UTC().Truncate(time.Second),
	}
}

func listKeys(s *Sim, c *call) (answer, error) {
	return list(c, "ssh_keys", s.keys, func(k *sshKey) bool { return anyOf(c, "fingerprint", k.fingerprint) }, (*sshKey).wire)
}

func getKey(s *Sim, c *call) (answer, error) {
	k, err := pathObject(c, "ssh_key", s.keys)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"ssh_key": k.wire()}}, nil
}

func createKey(s *Sim, c *call) (answer, error) {
	req, err := decode[schema.SSHKeyCreateRequest](c)
	if err != nil {
		return answer{}, err
	}
	labels, err := checkLabels(req.Labels)
	if err != nil {
		return answer{}, err
	}
	if req.Name == "" {
		return answer{}, newFieldError("name", "is needed")
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(req.PublicKey))
	if err != nil {
		return answer{}, newFieldError("public_key", "is no public key")
	}
	if err := checkNameFree(s.keys, "SSH key", req.Name, 0); err != nil {
		return answer{}, err
	}
	k := &sshKey{
		id:          s.nextID(),
		name:        req.Name,
		public:      req.PublicKey,
		fingerprint: ssh.FingerprintLegacyMD5(pub),
		labels:      labels,
		created:     c.now,
	}
	for _, other := range s.keys {
		if other.fingerprint == k.fingerprint {
			return answer{}, newError("uniqueness_error", "SSH key with the same fingerprint already exists")
		}
	}
	s.keys[k.id] = k
	return answer{http.StatusCreated, map[string]any{"ssh_key": k.wire()}}, nil
}

func updateKey(s *Sim, c *call) (answer, error) {
	k, err := pathObject(c, "ssh_key", s.keys)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.SSHKeyUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if req.Name != "" {
		if err := checkNameFree(s.keys, "SSH key", req.Name, k.id); err != nil {
			return answer{}, err
		}
		k.name = req.Name
	}
	if req.Labels != nil {
		if k.labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	return answer{http.StatusOK, map[string]any{"ssh_key": k.wire()}}, nil
}

func deleteKey(s *Sim, c *call) (answer, error) {
	if _, err := pathObject(c, "ssh_key", s.keys); err != nil {
		return answer{}, err
	}
	delete(s.keys, c.id)
	return answer{status: http.StatusNoContent}, nil
}
