//go:build unix

package doctor

import "golang.org/x/sys/unix"

func freeSpace(path string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Space{}, err
	}
	return Space{Bytes: st.Bavail * uint64(st.Bsize), Inodes: st.Ffree, NoInodes: st.Files == 0}, nil //nolint:gosec,unconvert // differs by system
}
