package simgithub

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// RepoSeed describes a repository to be made.
type RepoSeed struct {
	Owner         string
	Name          string
	Private       bool
	DefaultBranch string            // default "main"
	Files         map[string]string // first commit: path to content
	FromDir       string            // instead of Files: a folder whose files (and their executable bits) are the first commit
	FromGit       string            // instead of both: a git repository on disk, whose branches are taken with their history
	Collaborators map[string]Role
	NotInstalled  bool // do not give it to the App
}

// SeedRepo makes a repository with one commit by its owner, makes the accounts that it names, and installs the App on it.
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
	r.Dir = filepath.Join(s.cfg.Dir, "repos", itoa(r.ID)+".git")
	if err := s.initRepo(r); err != nil {
		return nil, err
	}
	if err := s.firstCommit(r, owner, seed); err != nil {
		return nil, err
	}
	s.repos[repoKey(r.FullName())] = r
	s.nodes[r.NodeID] = r
	if !seed.NotInstalled {
		s.install(r)
	}
	return r, nil
}

// initRepo makes the bare repository, which serves what GitHub serves and never collects garbage by itself.
func (s *Sim) initRepo(r *Repo) error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("make repository: %w", err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/" + r.DefaultBranch + "\n", "config": bareConfig} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("make repository: %w", err)
		}
	}
	return writeHook(r)
}

// bareConfig is what `git init --bare` writes, with what GitHub serves and without garbage collection.
const bareConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logAllRefUpdates = false
[gc]
	auto = 0
[http]
	receivepack = true
[receive]
	autogc = false
	denyDeleteCurrent = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
`

func (s *Sim) firstCommit(r *Repo, owner *User, seed RepoSeed) error {
	if seed.FromGit != "" {
		return s.takeHistory(r, seed.FromGit)
	}
	entries, err := s.seedEntries(r, seed)
	if err != nil {
		return err
	}
	tree, err := s.git.writeTree(r, "", entries)
	if err != nil {
		return err
	}
	who := s.identityOf(owner)
	sha, err := s.makeCommit(r, newCommit{tree: tree, message: "Initial commit\n", author: who, committer: who})
	if err != nil {
		return err
	}
	return s.git.updateRef(r, "refs/heads/"+r.DefaultBranch, sha, "")
}

// takeHistory copies all branches of a repository on disk.
func (s *Sim) takeHistory(r *Repo, dir string) error {
	from, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find repository %s: %w", dir, err)
	}
	if _, err := s.git.out(r, "fetch", "--quiet", from, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return err
	}
	if s.git.branch(r, r.DefaultBranch) == "" {
		return fmt.Errorf("repository %s has no branch %s", dir, r.DefaultBranch)
	}
	return nil
}

func (s *Sim) seedEntries(r *Repo, seed RepoSeed) ([]treeEntry, error) {
	if seed.FromDir != "" {
		return s.dirEntries(r, seed.FromDir)
	}
	var list []treeEntry
	for _, path := range slices.Sorted(maps.Keys(seed.Files)) {
		content := seed.Files[path]
		list = append(list, treeEntry{Path: path, Mode: "100644", Type: "blob", Content: &content})
	}
	return list, nil
}

func (s *Sim) dirEntries(r *Repo, dir string) ([]treeEntry, error) {
	var list []treeEntry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		mode, content, err := readEntry(path, d)
		if err != nil || mode == "" {
			return err
		}
		sha, err := s.git.writeBlob(r, content)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		list = append(list, treeEntry{Path: filepath.ToSlash(rel), Mode: mode, Type: "blob", SHA: &sha})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", dir, err)
	}
	return list, nil
}

// readEntry reads a file or link as git would store it; mode is empty for what git does not store.
func readEntry(path string, d fs.DirEntry) (mode string, content []byte, err error) {
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return "120000", []byte(target), err
	case !d.Type().IsRegular():
		return "", nil, nil
	}
	info, err := d.Info()
	if err != nil {
		return "", nil, err
	}
	mode = "100644"
	if info.Mode()&0o111 != 0 {
		mode = "100755"
	}
	content, err = os.ReadFile(path)
	return mode, content, err
}
