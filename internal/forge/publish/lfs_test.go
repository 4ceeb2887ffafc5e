package publish_test

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// someLarge returns objects to upload, by ID.
func someLarge(contents ...string) map[string][]byte {
	objects := map[string][]byte{}
	for _, content := range contents {
		p, _ := changeset.PointerTo([]byte(content))
		objects[p.OID] = []byte(content)
	}
	return objects
}

func calls(w *forgetest.World, route string) int {
	list, _ := w.Calls()
	for _, c := range list {
		if c.Route == route {
			return c.Count
		}
	}
	return 0
}

// TestUploadLargeFiles checks that all objects exist after an interrupted attempt and a retry, that none is sent twice,
// and that all tokens are revoked.
func TestUploadLargeFiles(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	objects := someLarge("first", "second", strings.Repeat("third", 100_000))
	w.Inject(t, simgithub.Fault{Path: `/upload$`, Nth: 2, Count: 1, Cut: true, After: true})
	err := w.Forge.UploadLargeFiles(t.Context(), w.Repo, objects)
	if class, _ := forge.Classify(err); class != forge.ClassTemporary {
		t.Fatalf("interrupted upload: %v, %s", err, class)
	}
	for range 2 {
		if err := w.Forge.UploadLargeFiles(t.Context(), w.Repo, objects); err != nil {
			t.Fatal(err)
		}
	}
	if puts := calls(w, "git lfs upload"); puts != 3 {
		t.Errorf("%d uploads of 3 objects", puts)
	}
	var list []changeset.Pointer
	for oid, content := range objects {
		got, err := w.LFS(forgetest.FullName, oid)
		if err != nil || string(got) != string(content) {
			t.Errorf("object %s: %v, %d bytes", oid, err, len(got))
		}
		list = append(list, changeset.Pointer{OID: oid, Size: int64(len(content))})
	}
	missing, _ := changeset.PointerTo([]byte("missing"))
	there, err := w.Forge.LargeFiles(t.Context(), w.Repo, append(list, missing, changeset.Pointer{OID: list[0].OID, Size: 1}))
	if err != nil || len(there) != 3 || there[missing] {
		t.Errorf("existing objects %v, %v", there, err)
	}
	if made, ended := calls(w, "POST /app/installations/{installation_id}/access_tokens"), calls(w, "DELETE /installation/token"); ended != 3 {
		t.Errorf("%d tokens were created, %d revoked", made, ended)
	}
}

// TestRefusedLargeFilesAreExplained checks the class and the reason of each failure.
func TestRefusedLargeFilesAreExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault simgithub.Fault
		class forge.Class
		want  string // of the reason
	}{
		"disabled":     {simgithub.Fault{Path: "/objects/batch$", Status: http.StatusForbidden, Body: `{"message":"Git LFS is disabled for this repository."}`}, forge.ClassPermanent, "Git LFS is disabled"},
		"bad gateway":  {simgithub.Fault{Path: "/objects/batch$", Status: http.StatusBadGateway}, forge.ClassTemporary, "internal error (502)"},
		"rate limit":   {simgithub.Fault{Path: "/objects/batch$", Status: http.StatusTooManyRequests, RetryAfter: 5}, forge.ClassTemporary, "rate limit"},
		"quota":        {simgithub.Fault{Path: "/objects/batch$", Status: http.StatusOK, Body: `{"objects":[{"oid":"OID","size":5,"error":{"code":507,"message":"Over its data quota"}}]}`}, forge.ClassPermanent, "Over its data quota"},
		"no answer":    {simgithub.Fault{Path: "/objects/batch$", Status: http.StatusOK, Body: `{"objects":[]}`}, forge.ClassTemporary, "GitHub could not be reached"},
		"plain HTTP":   {simgithub.Fault{Path: "/objects/batch$", Status: http.StatusOK, Body: `{"objects":[{"oid":"OID","size":5,"actions":{"upload":{"href":"http://192.0.2.1/x?secret"}}}]}`}, forge.ClassTemporary, ""},
		"wrong hash":   {simgithub.Fault{Path: "/upload$", Status: http.StatusUnprocessableEntity, Body: `{"message":"another SHA-256"}`}, forge.ClassPermanent, "another SHA-256"},
		"redirected":   {simgithub.Fault{Path: "/upload$", Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": "http://192.0.2.1/"}}, forge.ClassPermanent, ""},
		"not verified": {simgithub.Fault{Path: "/verify$", Status: http.StatusServiceUnavailable}, forge.ClassTemporary, "internal error (503)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := forgetest.NewWorld(t)
			objects := someLarge("first")
			for oid := range objects {
				c.fault.Body = strings.ReplaceAll(c.fault.Body, "OID", oid)
			}
			w.Inject(t, c.fault)
			err := w.Forge.UploadLargeFiles(t.Context(), w.Repo, objects)
			var e *forge.Error
			if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(e.Reason, c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%#v", err)
			}
		})
	}
}

// TestLFSDisabledOrWrongHash checks that there are no large files if Git LFS is disabled, and that an object with a
// wrong hash is not stored.
func TestLFSDisabledOrWrongHash(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	w.Inject(t, simgithub.Fault{Path: "/objects/batch$", Status: http.StatusNotFound, Count: 1})
	p, _ := changeset.PointerTo([]byte("x"))
	if there, err := w.Forge.LargeFiles(t.Context(), w.Repo, []changeset.Pointer{p}); err != nil || len(there) != 0 {
		t.Errorf("%v, %v", there, err)
	}
	if err := w.Forge.UploadLargeFiles(t.Context(), w.Repo, map[string][]byte{p.OID: []byte("y")}); err == nil {
		t.Error("an object with a wrong hash was accepted")
	}
	if _, err := w.LFS(forgetest.FullName, p.OID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the object with a wrong hash was stored: %v", err)
	}
}
