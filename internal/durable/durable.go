// Package durable writes files and creates folders that survive a power cut.
//
// A function that returns nil guarantees that its file is complete on disk under its name. After an error the name
// refers to the old file or to the new one, complete; a power cut may still undo the new name if its folder could not
// be synced. Errors are those of the operating system, wrapped.
//
// Start here: [WriteFile].
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// TempPrefix starts the names of files that are being written. A file that a dead process left with it may be removed.
const TempPrefix = ".new-"

// WriteFile atomically replaces the file at path. If the process dies or the power fails, path refers to the complete
// old file or to the complete new one.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), TempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode)); err != nil {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	} else {
		err = Place(f, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Place syncs and closes f, which has been written under a temporary name on the same disk, and renames it to path.
// After an error f is closed and its temporary name is gone; path may refer to it nevertheless, if the folder could not
// be synced.
func Place(f *os.File, path string) error {
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// MkdirAll creates a folder and its missing parents, and makes them durable.
func MkdirAll(dir string, mode os.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MkdirAll(above, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, mode); err != nil {
		info, statErr := os.Stat(dir) // another process may have created it
		if statErr != nil || !info.IsDir() {
			return err
		}
	}
	if err := SyncDir(above); err != nil {
		return errors.Join(err, os.Remove(dir)) // the next attempt must not mistake it for durable
	}
	return nil
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
