// Command image writes a container image with errand, without Docker: an archive in the layout of the Open Container Initiative (OCI),
// with which `docker load`, `podman load` and skopeo create the image.
//
// The image has one layer: a small Debian with git and the certificates of authorities, installed by mmdebstrap, and errand's programs. The
// result depends only on the flags, the programs and the versions of Debian's packages. Libraries that write images serve registries and
// bring many modules; an archive with one layer takes a page.
//
// Start with main, then install, which makes the file system, and writeArchive.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// options are the flags.
type options struct {
	programs string // folder with errand and errand-runner-linux-ARCH
	arch     string
	version  string
	revision string
	created  time.Time
	out      string
}

// tag matches what may follow the colon in the name of an image.
var tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

func main() {
	var o options
	var seconds int64
	flag.StringVar(&o.programs, "programs", "", "folder with errand, errand-runner-linux-amd64 and errand-runner-linux-arm64")
	flag.StringVar(&o.arch, "arch", "amd64", "amd64 or arm64; another one than this host's needs qemu-user-static")
	flag.StringVar(&o.version, "version", "", "version, which is also the image's tag")
	flag.StringVar(&o.revision, "revision", "", "commit")
	flag.Int64Var(&seconds, "time", 0, "time of the image, in seconds since 1970")
	flag.StringVar(&o.out, "o", "", "archive to write")
	flag.Parse()
	o.created = time.Unix(seconds, 0).UTC()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "no container image was made:", err)
		os.Exit(1)
	}
}

// run makes the file system and the archive in a temporary folder beside the result, which it replaces at the end.
func run(ctx context.Context, o options) (err error) {
	if !tag.MatchString(o.version) {
		return fmt.Errorf("the version %q cannot be the tag of an image: use letters, digits, dots, hyphens and underscores", o.version)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(o.out), ".image-")
	if err != nil {
		return fmt.Errorf("make a folder beside the archive: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	layer, archive := filepath.Join(tmp, "layer.tar"), filepath.Join(tmp, "archive.tar")
	if err := install(ctx, o, layer); err != nil {
		return err
	}
	if err := writeArchive(o, layer, archive); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return os.Rename(archive, o.out)
}
