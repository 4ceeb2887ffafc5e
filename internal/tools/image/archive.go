package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
)

// name is the image's name without its tag. No registry has it, so nobody gets a stranger's image by a mistake.
const name = "localhost/errand"

// The types of documents and blobs.
const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	typeIndex    = "application/vnd.oci.image.index.v1+json"
)

// A descriptor refers to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// A blob is a file of the archive that is named by its digest.
type blob struct {
	descriptor
	data []byte // or
	file string
}

func (b blob) path() string { return "blobs/sha256/" + b.Digest[len("sha256:"):] }

// newBlob returns the blob of a document.
func newBlob(mediaType string, document any) (blob, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return blob{}, err
	}
	sum := sha256.Sum256(data)
	return blob{descriptor: descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}, data: data}, nil
}

// compress writes the layer's blob beside it, and returns the blob and the digest of its content.
func compress(layer string) (_ blob, content string, err error) {
	in, err := os.Open(layer)
	if err != nil {
		return blob{}, "", err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.Create(layer + ".gz")
	if err != nil {
		return blob{}, "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	plain, packed := sha256.New(), sha256.New()
	z := gzip.NewWriter(io.MultiWriter(out, packed))
	if _, err := io.Copy(io.MultiWriter(z, plain), in); err != nil {
		return blob{}, "", err
	}
	if err := z.Close(); err != nil {
		return blob{}, "", err
	}
	info, err := out.Stat()
	if err != nil {
		return blob{}, "", err
	}
	d := descriptor{MediaType: typeLayer, Digest: "sha256:" + hex.EncodeToString(packed.Sum(nil)), Size: info.Size()}
	return blob{descriptor: d, file: out.Name()}, "sha256:" + hex.EncodeToString(plain.Sum(nil)), nil
}

// config returns the image's configuration: how its program starts.
func config(o options, content string) map[string]any {
	user := strconv.Itoa(id)
	return map[string]any{
		"created": o.created.Format(time.RFC3339), "architecture": o.arch, "os": "linux",
		"config": map[string]any{
			"User":         user + ":" + user,
			"ExposedPorts": map[string]any{"8080/tcp": struct{}{}},
			// By container errand knows that it is in one; podman and systemd-nspawn set it, too.
			"Env":        []string{"PATH=" + binFolder + ":/usr/local/bin:/usr/bin:/bin", "container=oci"},
			"Entrypoint": []string{binFolder + "/errand"},
			"Cmd":        []string{"serve", "-c", configFolder + "/config.yml"},
			"Volumes":    map[string]any{dataFolder: struct{}{}},
			"WorkingDir": configFolder,
			"StopSignal": "SIGTERM",
			"Labels": map[string]string{
				"org.opencontainers.image.title":       "errand",
				"org.opencontainers.image.description": "A GitHub App that plans, implements and revises the issues assigned to it",
				"org.opencontainers.image.source":      "https://github.com/errand-bot/errand",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     o.version,
				"org.opencontainers.image.revision":    o.revision,
				"org.opencontainers.image.created":     o.created.Format(time.RFC3339),
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{content}},
		"history": []any{map[string]any{"created": o.created.Format(time.RFC3339), "created_by": "make image", "comment": "Debian " + suite + " and errand " + o.version}},
	}
}

// writeArchive writes the image with the layer. Besides the files of an OCI layout it has manifest.json, which older versions of Docker read.
func writeArchive(o options, layer, archive string) error {
	packed, content, err := compress(layer)
	if err != nil {
		return fmt.Errorf("compress the layer: %w", err)
	}
	settings, err := newBlob(typeConfig, config(o, content))
	if err != nil {
		return err
	}
	manifest, err := newBlob(typeManifest, map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": settings.descriptor, "layers": []descriptor{packed.descriptor},
	})
	if err != nil {
		return err
	}
	listed := manifest.descriptor
	listed.Platform = &platform{Architecture: o.arch, OS: "linux"}
	listed.Annotations = map[string]string{"org.opencontainers.image.ref.name": o.version, "io.containerd.image.name": name + ":" + o.version}
	return writeTar(archive, o.created, []file{
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"index.json", map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{listed}}},
		{"manifest.json", []any{map[string]any{"Config": settings.path(), "RepoTags": []string{name + ":" + o.version}, "Layers": []string{packed.path()}}}},
	}, manifest, settings, packed)
}

// file is a file of the archive with a JSON document.
type file struct {
	path     string
	document any
}

// writeTar writes the archive.
func writeTar(path string, at time.Time, files []file, blobs ...blob) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	add := func(name string, size int64, content io.Reader) error {
		h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := io.Copy(w, content)
		return err
	}
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
	}
	for _, f := range files {
		data, err := json.Marshal(f.document)
		if err != nil {
			return err
		}
		if err := add(f.path, int64(len(data)), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	for _, b := range blobs {
		if err := addBlob(add, b); err != nil {
			return err
		}
	}
	return w.Close()
}

func addBlob(add func(string, int64, io.Reader) error, b blob) error {
	if b.file == "" {
		return add(b.path(), b.Size, bytes.NewReader(b.data))
	}
	f, err := os.Open(b.file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return add(b.path(), b.Size, f)
}
