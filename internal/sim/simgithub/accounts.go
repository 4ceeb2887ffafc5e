package simgithub

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
)

// nodeID returns an opaque id in GitHub's newer format. Kind is its prefix, such as "IC".
func nodeID(kind string, id int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return kind + "_kwDO" + base64.RawURLEncoding.EncodeToString(b[:])
}

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}

func (s *Sim) makeApp() error {
	key := s.cfg.Key
	if key == nil {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return fmt.Errorf("create the App's key: %w", err)
		}
	}
	id := s.newID()
	bot := s.addUser(s.cfg.AppSlug+"[bot]", TypeBot)
	s.key = key
	s.app = App{
		ID: id, NodeID: nodeID("A", id), Slug: s.cfg.AppSlug, Name: s.cfg.AppSlug, ClientID: "Iv23li" + randomHex(7), ClientSecret: randomHex(20),
		Owner:         "app-owner",
		PEM:           pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		WebhookSecret: randomHex(16), Permissions: maps.Clone(s.cfg.Permissions), Events: slices.Clone(s.cfg.Events),
		BotLogin: bot.Login, BotID: bot.ID,
	}
	s.addUser(s.app.Owner, TypeOrg)
	return nil
}

// App returns the App with its id, key, secret and bot account. The maps and slices are copies.
func (s *Sim) App() App {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app
	a.Permissions = maps.Clone(a.Permissions)
	a.Events = slices.Clone(a.Events)
	a.PEM = slices.Clone(a.PEM)
	return a
}

// AddUser creates a person's account with a personal access token. If the login exists already, it returns that
// account.
func (s *Sim) AddUser(login string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUser(login, TypeUser)
}

// AddBot creates the account of another App, such as "dependabot[bot]". Its token works like a person's.
func (s *Sim) AddBot(login string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUser(login, TypeBot)
}

// AddOrg creates an organization, which may own repositories but cannot act.
func (s *Sim) AddOrg(login string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUser(login, TypeOrg)
}

// User returns an account by login.
func (s *Sim) User(login string) (*User, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[login]
	return u, ok
}

func (s *Sim) addUser(login, kind string) *User {
	if u, ok := s.users[login]; ok {
		return u
	}
	prefix := map[string]string{TypeUser: "U", TypeBot: "BOT", TypeOrg: "O"}[kind]
	u := &User{ID: s.newID(), Login: login, Type: kind, CreatedAt: s.now()}
	u.NodeID = nodeID(prefix, u.ID)
	if kind != TypeOrg {
		u.Token = "ghp_" + randomHex(18)
		s.tokens[u.Token] = &token{user: u}
	}
	s.users[login] = u
	s.nodes[u.NodeID] = u
	return u
}

// Install adds a repository to the owner's installation of the App, which it creates if there is none, and returns its
// id. The App receives installation.created or installation_repositories.added.
func (s *Sim) Install(full string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return 0, fmt.Errorf("install App on %s: no such repository", full)
	}
	return s.install(r).ID, nil
}

func (s *Sim) install(r *Repo) *Installation {
	x := s.session(s.users[r.Owner])
	for _, in := range s.installs {
		if in.Account != r.Owner {
			continue
		}
		if !in.has(r.ID) {
			in.RepoIDs = append(in.RepoIDs, r.ID)
			in.UpdatedAt = s.now()
			x.webhooks().installationRepos(in, "added", r)
		}
		return in
	}
	in := &Installation{
		ID: s.newID(), Account: r.Owner, RepoIDs: []int64{r.ID}, Permissions: maps.Clone(s.app.Permissions),
		CreatedAt: s.now(), UpdatedAt: s.now(),
	}
	in.NodeID = nodeID("IN", in.ID)
	s.installs = append(s.installs, in)
	x.webhooks().installation(in, "created")
	return in
}

// Uninstall removes the App from an account: its tokens become invalid, and the App receives installation.deleted.
func (s *Sim) Uninstall(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, in := range s.installs {
		if in.Account == account {
			s.session(s.users[account]).webhooks().installation(in, "deleted")
			s.installs = slices.Delete(s.installs, n, n+1)
			return
		}
	}
}

// Suspend suspends or unsuspends the App on an account.
func (s *Sim) Suspend(account string, suspended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.installs {
		if in.Account == account {
			in.Suspended = suspended
			action := "unsuspend"
			if suspended {
				action = "suspend"
			}
			s.session(s.users[account]).webhooks().installation(in, action)
		}
	}
}

// GrantPermissions changes the permissions of an installation, as if the account's owner had accepted a change.
// Permissions at the level "none" are left out, as on GitHub.
func (s *Sim) GrantPermissions(account string, perms map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.installs {
		if in.Account == account {
			in.Permissions = maps.Clone(perms)
			maps.DeleteFunc(in.Permissions, func(_, level string) bool { return level == "none" })
			s.session(s.users[account]).webhooks().installation(in, "new_permissions_accepted")
		}
	}
}

// ChangeApp changes the permissions and events of the App, as if its owner had saved its settings. Installations keep the permissions that they
// have until GrantPermissions.
func (s *Sim) ChangeApp(perms map[string]string, events []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.Permissions, s.app.Events = maps.Clone(perms), slices.Clone(events)
}

// AddCollaborator gives a person a role in a repository, as if the person had accepted an invitation.
func (s *Sim) AddCollaborator(full, login string, role Role) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(full)]
	if !ok {
		return fmt.Errorf("add a collaborator to %s: no such repository", full)
	}
	s.addUser(login, TypeUser)
	if r.Collaborators == nil {
		r.Collaborators = map[string]Role{}
	}
	r.Collaborators[login] = role
	return nil
}
