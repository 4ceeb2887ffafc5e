package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Repository is a bare repository on disk. Its methods may be called concurrently as far as git permits it.
type Repository struct {
	Dir   string
	git   runner
	loose looseStore
	fixed fixedOutputs
}

// Init creates a bare repository in dir. It serves the same requests as GitHub and never collects garbage
// automatically. Home is the home directory of its git commands.
func Init(home, dir, branch string) (*Repository, error) {
	r := &Repository{Dir: dir, git: runner{home: home}, loose: looseStore{dir: dir}}
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("make repository: %w", err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/" + branch + "\n", "config": bareConfig} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("make repository: %w", err)
		}
	}
	return r, r.writeHook()
}

// bareConfig is the configuration that `git init --bare` writes, with settings as on GitHub and no garbage collection.
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

// Fetch copies all branches and tags of a repository on disk, which must have the given branch.
func (r *Repository) Fetch(dir, branch string) error {
	from, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find repository %s: %w", dir, err)
	}
	if _, err := r.Output("fetch", "--quiet", from, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return err
	}
	if r.Branch(branch) == "" {
		return fmt.Errorf("repository %s has no branch %s", dir, branch)
	}
	return nil
}

// StoreFolder stores the files of a folder on disk and returns them as entries of a tree.
func (r *Repository) StoreFolder(dir string) ([]TreeEntry, error) {
	var list []TreeEntry
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
		sha, err := r.WriteBlob(content)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		list = append(list, TreeEntry{Path: filepath.ToSlash(rel), Mode: mode, Type: "blob", SHA: &sha})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", dir, err)
	}
	return list, nil
}

// readEntry reads a file or a link as git would store it. The mode is empty for files that git does not store.
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

// NoWorkflows in the environment of a push makes the repository refuse changes of workflow files.
const NoWorkflows = "SIM_NO_WORKFLOWS=1"

// preReceive refuses the pushes that GitHub refuses: to its own references, and of workflow files by Apps without the
// permission to change them.
const preReceive = `#!/bin/sh
zero=0000000000000000000000000000000000000000
while read -r old new ref; do
	case "$ref" in
	refs/pull/*)
		echo "deny updating a hidden ref: $ref" >&2
		exit 1 ;;
	esac
	if [ -z "$SIM_NO_WORKFLOWS" ] || [ "$new" = "$zero" ]; then
		continue
	fi
	file=$(git log --format= --name-only -m "$new" --not --all -- .github/workflows | head -n 1)
	if [ -n "$file" ]; then
		echo "refusing to allow a GitHub App to create or update workflow \` + "`$file\\`" + ` without \` + "`workflows\\`" + ` permission" >&2
		exit 1
	fi
done
exit 0
`

func (r *Repository) writeHook() error {
	dir := filepath.Join(r.Dir, "hooks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make hooks folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pre-receive"), []byte(preReceive), 0o755); err != nil {
		return fmt.Errorf("write hook: %w", err)
	}
	return nil
}
