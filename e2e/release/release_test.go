package release

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/heavytest"
)

const (
	version = "v1.9999.0" // higher than a tag that the commit may have
	// limit is the time limit of one release, whose modules, and those of a tool, may have to be downloaded and compiled while other heavy
	// tests use both processors. The test itself ends after 40 minutes.
	limit = 30 * time.Minute
)

var (
	platform = runtime.GOOS + "-" + runtime.GOARCH
	archive  = "errand-" + version + "-" + platform
	commands = []string{"errand", "errand-demo", "errand-runner"}
)

// TestHeavyRelease builds the release of HEAD for this platform twice, and examines one of them.
func TestHeavyRelease(t *testing.T) {
	heavytest.Mark(t)
	for _, program := range []string{"git", "make", "bash", "tar", "gzip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIP: no release is made: %s is not installed", program)
		}
	}
	checkout, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skip("SKIP: no release is made: this is no checkout of git")
	}
	source := strings.TrimSpace(string(checkout))
	first := makeRelease(t, source, filepath.Join(t.TempDir(), "a"), "umask 022", "TZ=UTC", "LC_ALL=C")
	second := makeRelease(t, source, filepath.Join(t.TempDir(), "another folder", "with a longer name"), "umask 077",
		"TZ=Pacific/Auckland", "LC_ALL=C.UTF-8", "GOFLAGS=-tags=another", "GOAMD64=v3", "GOARM64=v8.2", "TAR_OPTIONS=--exclude=LICENSE", "GZIP=-1")
	sums := checksums(t, first)
	if diff := cmp.Diff(sums, checksums(t, second)); diff != "" {
		t.Fatalf("the second release differs:\n%s", diff)
	}
	checkSums(t, first, sums)
	dir := unpack(t, filepath.Join(first, archive+".tar.gz"), commitTime(t, source))
	checkPrograms(t, dir)
	for _, command := range commands {
		checkComponents(t, filepath.Join(dir, command), filepath.Join(first, archive+"."+command+".cdx.json"))
	}
	t.Logf("PROOF: two releases of %s, built in other folders with another umask, time zone and environment, are the same %d files byte for byte", platform, len(sums))
}

// makeRelease clones HEAD into a folder, makes a release there, and returns the folder with it.
func makeRelease(t *testing.T, source, clone, umask string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	settings := slices.DeleteFunc(os.Environ(), func(v string) bool { // of a make that runs this test
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") || strings.HasPrefix(v, "CGO_ENABLED=")
	})
	for _, script := range []string{
		"git clone -q --no-hardlinks " + quoted(source) + " " + quoted(clone),
		"cd " + quoted(clone) + " && git tag " + version + " && find . -path ./.git -prune -o -type f -exec touch -d '2001-02-03 04:05:06' {} +",
		"cd " + quoted(clone) + " && make release VERSION=" + version + " PLATFORMS=" + platform,
	} {
		cmd := exec.CommandContext(ctx, "bash", "-c", umask+" && "+script)
		cmd.Env = append(slices.Clone(settings), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	return filepath.Join(clone, "dist")
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// commitTime is the time of the released commit, which all files of the archive have.
func commitTime(t *testing.T, source string) time.Time {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", source, "log", "-1", "--format=%ct").Output()
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(seconds, 0)
}

// checksums returns the checksums of a release's files by their names.
func checksums(t *testing.T, dist string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dist, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		sum := sha256.Sum256(data)
		sums[strings.TrimPrefix(path, dist+"/")] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// checkSums compares SHA256SUMS with the files, which are the archive and a list of components of each program.
func checkSums(t *testing.T, dist string, sums map[string]string) {
	t.Helper()
	want := map[string]string{archive + ".tar.gz": sums[archive+".tar.gz"]}
	for _, command := range commands {
		name := archive + "." + command + ".cdx.json"
		want[name] = sums[name]
	}
	data, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got[name] = sum
	}
	if diff := cmp.Diff(want, got); diff != "" || len(sums) != len(want)+1 {
		t.Errorf("there are the files %q; SHA256SUMS differs from them:\n%s", slices.Sorted(maps.Keys(sums)), diff)
	}
}

// unpack unpacks the archive, whose files belong to nobody in particular and have one time and plain modes.
func unpack(t *testing.T, path string, when time.Time) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	dir, names := t.TempDir(), []string{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimSuffix(h.Name, "/"))
		checkHeader(t, h, when)
		if h.Typeflag == tar.TypeDir {
			continue
		}
		to := filepath.Join(dir, h.Name)
		data, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, data, fs.FileMode(h.Mode)&fs.ModePerm)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"LICENSE", "README.md", "CHANGELOG.md", "config.example.yml", "docs/operators.md", "errand", "errand-demo", "errand-runner", "errand-runner-linux-amd64", "errand-runner-linux-arm64"} {
		if !slices.Contains(names, archive+"/"+want) {
			t.Errorf("the archive has no %s", want)
		}
	}
	return filepath.Join(dir, archive)
}

// checkHeader checks what the archive says about a file.
func checkHeader(t *testing.T, h *tar.Header, when time.Time) {
	t.Helper()
	name := strings.TrimSuffix(h.Name, "/")
	if !filepath.IsLocal(name) || name != archive && !strings.HasPrefix(name, archive+"/") || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
		t.Fatalf("the archive has %q, of type %q", h.Name, h.Typeflag)
	}
	if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(when) {
		t.Errorf("%s belongs to %d:%d (%q:%q) and is of %s, want %s", name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime, when)
	}
	want := int64(0o644)
	if h.Typeflag == tar.TypeDir || strings.HasPrefix(filepath.Base(name), "errand") && filepath.Ext(name) == "" {
		want = 0o755
	}
	if h.Mode&0o7777 != want {
		t.Errorf("%s has the mode %o, want %o", name, h.Mode, want)
	}
}

// checkPrograms starts errand as this user, and looks whether programs for Linux are static and of their platform.
func checkPrograms(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "errand"), "version").CombinedOutput()
	if want := "errand " + version + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"; err != nil || string(out) != want {
		t.Errorf("errand version: %v, got %q, want %q", err, out, want)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	programs := map[string]string{"errand-runner-linux-amd64": "amd64", "errand-runner-linux-arm64": "arm64"}
	if runtime.GOOS == "linux" {
		for _, command := range commands {
			programs[command] = runtime.GOARCH
		}
	}
	for name, arch := range programs {
		f, err := elf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := f.ImportedLibraries()
		interpreted := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
		if f.Machine != machines[arch] || err != nil || len(libraries) > 0 || interpreted {
			t.Errorf("%s is for %s, with the libraries %q, %v, interpreted: %v", name, f.Machine, libraries, err, interpreted)
		}
		_ = f.Close()
	}
}

// checkComponents compares the list of a program's components with the modules that it was built from.
func checkComponents(t *testing.T, program, list string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		want = append(want, m.Path+" "+m.Version+" "+m.Sum)
	}
	data, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		BOMFormat, SerialNumber string
		Metadata                struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version, PURL string
			Hashes              []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(data, &sbom); err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, c := range sbom.Components {
		sum := ""
		for _, h := range c.Hashes {
			if raw, err := hex.DecodeString(h.Content); err == nil && h.Alg == "SHA-256" {
				sum = "h1:" + base64.StdEncoding.EncodeToString(raw)
			}
		}
		if !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@"+c.Version) {
			t.Errorf("%s: the component %s has the address %s", list, c.Name, c.PURL)
		}
		got = append(got, c.Name+" "+c.Version+" "+sum)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("%s differs from what %s was built from (-want +got):\n%s", list, program, diff)
	}
	if m := sbom.Metadata; sbom.BOMFormat != "CycloneDX" || sbom.SerialNumber != "" || m.Timestamp != "" || m.Component.Version != version || m.Component.Name != info.Main.Path {
		t.Errorf("%s begins with %+v", list, sbom.Metadata)
	}
}
