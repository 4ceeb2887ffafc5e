package remote

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// copyScript takes path, mode and size. It creates the file atomically: it writes a temporary file next to it, checks
// its size and renames it.
const copyScript = `set -eu
case $1 in */*) mkdir -p -- "${1%/*}/";; esac
tmp=$1.tmp.$$
trap 'rm -f -- "$tmp"' EXIT
trap 'exit 129' HUP INT TERM
umask 077
cat >"$tmp"
size=$(($(wc -c <"$tmp")))
[ "$size" -eq "$3" ] || { echo "got $size of $3 bytes" >&2; exit 90; }
chmod "$2" "$tmp"
mv -f -- "$tmp" "$1"
trap - EXIT`

// Copy writes exactly size bytes of r to path on the VM, with mode's permission bits, and creates missing directories.
// Readers of path see either the old file or the complete new one, even if the connection is lost.
func (c *Client) Copy(ctx context.Context, r io.Reader, size int64, path string, mode fs.FileMode) error {
	argv := []string{"sh", "-c", copyScript, "copy", path, fmt.Sprintf("%04o", mode.Perm()), strconv.FormatInt(size, 10)}
	res, err := c.Run(ctx, Cmd{Argv: argv, Stdin: io.LimitReader(r, size)})
	if err == nil {
		err = res.Check("write " + path)
	}
	if err != nil {
		return fmt.Errorf("copy to VM: %w", err)
	}
	return nil
}

// Get opens a file on the VM for reading. The caller must close it. Read returns an error in the middle of the file,
// such as a lost connection, and never reports it as the end of the file.
func (c *Client) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	out, wait, err := c.Stream(ctx, Cmd{Argv: []string{"cat", "--", path}})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return &remoteFile{ReadCloser: out, path: path, wait: wait}, nil
}

type remoteFile struct {
	io.ReadCloser
	path string
	wait func() (Result, error)
}

func (f *remoteFile) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	if err != io.EOF {
		return n, err
	}
	res, err := f.wait()
	if err == nil {
		err = res.Check("read " + f.path)
	}
	if err != nil {
		return n, fmt.Errorf("get %s: %w", f.path, err)
	}
	return n, io.EOF
}

// Close ends the transfer.
func (f *remoteFile) Close() error {
	err := f.ReadCloser.Close()
	_, _ = f.wait()
	return err
}
