package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// descriptor refers to a blob, as in the image specification of the Open Container Initiative.
type descriptor struct {
	MediaType, Digest string
	Size              int64
	Annotations       map[string]string
}

// imageConfig is the configuration of an image.
type imageConfig struct {
	Architecture, OS, Created string
	Config                    struct {
		User, WorkingDir, StopSignal string
		Env, Entrypoint, Cmd         []string
		ExposedPorts, Volumes        map[string]struct{}
		Labels                       map[string]string
	}
	RootFS struct {
		Type    string
		DiffIDs []string `json:"diff_ids"`
	}
}

// archive is an unpacked image archive, of which every blob was verified.
type archive struct {
	config imageConfig
	layer  string // uncompressed
	ref    map[string]string
}

// readArchive verifies an archive as a program does that loads images: by the layout of OCI, and by Docker's older manifest.json.
func readArchive(t *testing.T, path string) archive {
	t.Helper()
	dir := t.TempDir()
	extract(t, path, dir)
	var layout struct{ ImageLayoutVersion string }
	var index struct {
		SchemaVersion int
		MediaType     string
		Manifests     []descriptor
	}
	document(t, filepath.Join(dir, "oci-layout"), &layout)
	document(t, filepath.Join(dir, "index.json"), &index)
	if layout.ImageLayoutVersion != "1.0.0" || index.SchemaVersion != 2 || len(index.Manifests) != 1 {
		t.Fatalf("layout %+v, index %+v", layout, index)
	}
	var manifest struct {
		SchemaVersion int
		MediaType     string
		Config        descriptor
		Layers        []descriptor
	}
	document(t, verify(t, dir, index.Manifests[0], "application/vnd.oci.image.manifest.v1+json"), &manifest)
	if manifest.SchemaVersion != 2 || len(manifest.Layers) != 1 {
		t.Fatalf("manifest %+v, want one layer", manifest)
	}
	a := archive{ref: index.Manifests[0].Annotations}
	settings := verify(t, dir, manifest.Config, "application/vnd.oci.image.config.v1+json")
	document(t, settings, &a.config)
	packed := verify(t, dir, manifest.Layers[0], "application/vnd.oci.image.layer.v1.tar+gzip")
	a.layer = filepath.Join(dir, "layer.tar")
	if got := unzip(t, packed, a.layer); a.config.RootFS.Type != "layers" || strings.Join(a.config.RootFS.DiffIDs, " ") != got {
		t.Errorf("root file system %+v, want the layer %s", a.config.RootFS, got)
	}
	var old []struct {
		Config           string
		RepoTags, Layers []string
	}
	document(t, filepath.Join(dir, "manifest.json"), &old)
	if len(old) != 1 || filepath.Join(dir, old[0].Config) != settings || len(old[0].Layers) != 1 || filepath.Join(dir, old[0].Layers[0]) != packed ||
		strings.Join(old[0].RepoTags, " ") != a.ref["io.containerd.image.name"] {
		t.Errorf("manifest.json %+v has another image than index.json", old)
	}
	if blobs, err := os.ReadDir(filepath.Join(dir, "blobs/sha256")); err != nil || len(blobs) != 3 {
		t.Errorf("%d blobs, %v, want the manifest, the configuration and the layer", len(blobs), err)
	}
	return a
}

// extract unpacks the regular files of a tar file.
func extract(t *testing.T, path, dir string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatalf("%s in %s: %v", h.Name, path, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		save(t, to, r)
	}
}

func save(t *testing.T, path string, content io.Reader) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, content)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

func document(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// verify compares a blob with its descriptor, and returns its path.
func verify(t *testing.T, dir string, d descriptor, mediaType string) string {
	t.Helper()
	path := filepath.Join(dir, "blobs", filepath.FromSlash(strings.Replace(d.Digest, ":", "/", 1)))
	data, err := os.ReadFile(path)
	if sum := sha256.Sum256(data); err != nil || int64(len(data)) != d.Size || d.Digest != "sha256:"+hex.EncodeToString(sum[:]) || d.MediaType != mediaType {
		t.Fatalf("%+v does not describe %s, %v, or is not of the type %s", d, path, err, mediaType)
	}
	return path
}

// unzip writes the content of a compressed file and returns its digest.
func unzip(t *testing.T, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	save(t, to, io.TeeReader(z, sum))
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
