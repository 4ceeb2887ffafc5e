// Package backup copies the store and the files of errand's data folder while errand works, into one archive, and
// restores them.
//
// An archive is a tar file compressed by zstd. It begins with backup.json, which has an Info, and the store; then come
// the other files below data/, and last SHA256SUMS. A reader accepts nothing else, and nothing before all of it was
// verified. The folders of sandboxes and of copied repositories are left out: they are large, and errand works without.
//
// Start here: [Take] for a copy of the data folder, [Read] for the format, and [Restore].
package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/durable"
)

// Format is the version of the format that this errand writes, and the only one that it reads.
const Format = 1

// The entries of an archive that are no files of the data folder, and the prefix of those that are.
const (
	infoName  = "backup.json"
	sumsName  = "SHA256SUMS"
	dataPart  = "data/"
	storeName = "errand.db"
)

// The limits of an archive. They are far above what errand writes, and bound what a damaged or foreign file can cost.
const (
	maxFiles = 1_000_000
	maxSums  = 256 << 20
	maxInfo  = 64 << 10
	maxName  = 1000
)

// Info describes a backup.
type Info struct {
	Format     int       `json:"format"`
	Errand     string    `json:"errand"` // the version that made it
	Schema     int       `json:"schema"` // of the store
	At         time.Time `json:"at"`
	Deployment string    `json:"deployment"`
	App        int64     `json:"app_id"`
}

// FileName returns the usual name of the backup's file. It differs for each GitHub App and deployment.
func (i Info) FileName() string {
	return fmt.Sprintf("errand-%s-%d-%s%s", i.Deployment, i.App, i.At.UTC().Format(nameTime), nameEnd)
}

const (
	nameTime = "20060102-150405Z"
	nameEnd  = ".tar.zst"
)

// ErrDamaged means that a file is no complete backup: nothing of it is used.
var ErrDamaged = errors.New("this is no complete backup of errand")

// damaged returns an error that is ErrDamaged, with the reason.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// Names in the data folder, besides the store, that belong to no backup.
const (
	tempPrefix   = ".backup-"           // a copy that is being made
	newFolder    = "restore.new"        // a backup that is being unpacked
	unfinished   = "restore.unfinished" // exists while files are replaced
	beforePrefix = "before-restore-"    // what a restore replaced
)

// isLeftOut reports whether a name at the top of the data folder belongs to no backup.
func isLeftOut(name string) bool {
	return slices.Contains([]string{"local", "bake", "lost+found", newFolder, unfinished, storeName + ".compact"}, name) ||
		strings.HasPrefix(name, tempPrefix) || strings.HasPrefix(name, beforePrefix)
}

// PutAside returns the folders of earlier data that restorations put aside in the data folder.
func PutAside(data string) ([]string, error) {
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil, fmt.Errorf("list the data folder: %w", err)
	}
	var list []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), beforePrefix) {
			list = append(list, filepath.Join(data, e.Name()))
		}
	}
	return list, nil
}

// checkName returns an error for a path that no file of a backup may have, relative to the data folder and with slashes.
func checkName(name string) error {
	top, _, _ := strings.Cut(name, "/")
	switch {
	case len(name) > maxName, !fs.ValidPath(name), name == ".", strings.ContainsRune(name, '\\'), !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name %.200q is not permitted", name)
	case isLeftOut(top), slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasPrefix(part, durable.TempPrefix) }):
		return fmt.Errorf("the name %.200q is reserved", name)
	}
	return nil
}
