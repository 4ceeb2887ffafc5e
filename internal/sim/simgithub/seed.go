package simgithub

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// RepoSeed describes a repository to be created.
type RepoSeed struct {
	Owner         string
	Name          string
	Private       bool
	DefaultBranch string            // default "main"
	Files         map[string]string // first commit: path to content
	FromDir       string            // instead of Files: a folder whose files (and their executable bits) are the first commit
	FromGit       string            // instead of both: a git repository on disk, whose branches are taken with their history
	Collaborators map[string]Role
	NotInstalled  bool // do not install the App on it
	Empty         bool // no commit
}

// SeedRepo creates a repository with one commit by its owner and the accounts that it names, and installs the App on
// it.
func (s *Sim) SeedRepo(seed RepoSeed) (*Repo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.seedRepo(seed)
	if err != nil {
		return nil, fmt.Errorf("seed repository %s/%s: %w", seed.Owner, seed.Name, err)
	}
	return r.clone(), nil
}

func (s *Sim) seedRepo(seed RepoSeed) (*Repo, error) {
	if _, ok := s.repos[repoKey(seed.Owner+"/"+seed.Name)]; ok {
		return nil, errInvalid("Repository", "name", "already_exists")
	}
	if seed.DefaultBranch == "" {
		seed.DefaultBranch = "main"
	}
	owner := s.addUser(seed.Owner, TypeUser)
	for login := range seed.Collaborators {
		s.addUser(login, TypeUser)
	}
	r := &Repo{
		ID: s.newID(), Owner: seed.Owner, Name: seed.Name, Private: seed.Private, DefaultBranch: seed.DefaultBranch,
		Collaborators: maps.Clone(seed.Collaborators), Issues: map[int]*Issue{},
		CreatedAt: s.now(), UpdatedAt: s.now(), PushedAt: s.now(),
	}
	if r.Collaborators == nil {
		r.Collaborators = map[string]Role{}
	}
	r.NodeID = nodeID("R", r.ID)
	var err error
	if r.Git, err = git.Init(s.cfg.Dir, filepath.Join(s.cfg.Dir, "repos", itoa(r.ID)+".git"), r.DefaultBranch); err != nil {
		return nil, err
	}
	if r.wasEmpty = seed.Empty; !seed.Empty {
		if err := s.firstCommit(r, owner, seed); err != nil {
			return nil, err
		}
	}
	s.repos[repoKey(r.FullName())] = r
	s.nodes[r.NodeID] = r
	if !seed.NotInstalled {
		s.install(r)
	}
	return r, nil
}

func (s *Sim) firstCommit(r *Repo, owner *User, seed RepoSeed) error {
	if seed.FromGit != "" {
		return r.Git.Fetch(seed.FromGit, r.DefaultBranch)
	}
	entries, err := seedEntries(r, seed)
	if err != nil {
		return err
	}
	tree, err := writeTree(r, "", entries)
	if err != nil {
		return err
	}
	who := s.identityOf(owner)
	sha, err := r.Git.WriteCommit(git.NewCommit{Tree: tree, Message: "Initial commit\n", Author: who, Committer: who})
	if err != nil {
		return err
	}
	return r.Git.UpdateRef("refs/heads/"+r.DefaultBranch, sha, "")
}

func seedEntries(r *Repo, seed RepoSeed) ([]git.TreeEntry, error) {
	if seed.FromDir != "" {
		return r.Git.StoreFolder(seed.FromDir)
	}
	var list []git.TreeEntry
	for _, path := range slices.Sorted(maps.Keys(seed.Files)) {
		content := seed.Files[path]
		list = append(list, git.TreeEntry{Path: path, Mode: "100644", Type: "blob", Content: &content})
	}
	return list, nil
}
