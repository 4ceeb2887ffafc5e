// Package durable writes files and makes folders so that a power cut does not take them away again.
//
// What it has reported as written is whole on the disk, under its name. After an error the old file has the name, or the new one,
// whole, which a power cut may take away again: the folder could not be synced. Its errors are those of the operating system,
// wrapped. Start reading at WriteFile.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Temporary is how the names of files begin that are being written. One that a dead process left may be removed.
const Temporary = ".new-"

// WriteFile puts a file with this content in place of what has its name. Whenever the process dies or the power fails, the name
// stands for the old file or for the new one, whole.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), Temporary+"*")
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

// Place syncs and closes a file that has been written under another name on the same disk, and gives it its own. After an error
// it is closed, and not there under the other name; it may have its own all the same, if the folder could not be synced.
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

// MkdirAll makes a folder and those above it, as far as they are missing.
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
		info, look := os.Stat(dir) // somebody may have made it meanwhile
		if look != nil || !info.IsDir() {
			return err
		}
	}
	if err := SyncDir(above); err != nil {
		return errors.Join(err, os.Remove(dir)) // the next try must not take it for durable
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
