package changeset_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
)

var (
	base   = strings.Repeat("0a", 20)
	first  = strings.Repeat("1b", 20)
	second = strings.Repeat("2c", 20)
	other  = strings.Repeat("3d", 20)
	tree   = strings.Repeat("4e", 20)
)

// sample is a valid changeset of two commits.
func sample() *changeset.Changeset {
	one, two := []byte("one\n"), []byte("two\x00\xff")
	return &changeset.Changeset{
		Base: base,
		Commits: []changeset.Commit{
			{ID: first, Parents: []string{base}, Tree: tree, Message: "First\n", Changes: []changeset.Change{
				{Path: "a.txt", Mode: changeset.ModeFile, Blob: changeset.BlobID(one)},
				{Path: "dir/b", Mode: changeset.ModeExecutable, Blob: changeset.BlobID(two), OldMode: changeset.ModeFile},
				{Path: "gone", OldMode: changeset.ModeSymlink},
			}},
			{ID: second, Parents: []string{first, other}, Tree: tree, Message: "", Changes: []changeset.Change{
				{Path: "a.txt", OldMode: changeset.ModeFile},
				{Path: "sub", Mode: changeset.ModeSubmodule, Blob: other},
			}},
		},
		Blobs: map[string][]byte{changeset.BlobID(one): one, changeset.BlobID(two): two},
		Notes: []string{"A note."},
	}
}

func TestBlobID(t *testing.T) {
	t.Parallel()
	// As `git hash-object` gives them.
	for content, want := range map[string]string{
		"":        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
		"hello\n": "ce013625030ba8dba906f756967f9e9ca394464a",
	} {
		if got := changeset.BlobID([]byte(content)); got != want {
			t.Errorf("BlobID(%q) = %s, want %s", content, got, want)
		}
	}
}

func TestEncodeAndDecode(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := changeset.Encode(&b, sample()); err != nil {
		t.Fatal(err)
	}
	got, err := changeset.Decode(&b, changeset.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

// change returns the first change of a changeset.
func change(c *changeset.Changeset) *changeset.Change { return &c.Commits[0].Changes[0] }

// path returns an alteration after which the changeset only deletes the path p.
func path(p string) func(*changeset.Changeset) {
	return func(c *changeset.Changeset) {
		c.Commits = c.Commits[:1]
		c.Commits[0].Changes = []changeset.Change{{Path: p, OldMode: changeset.ModeFile}}
		c.Blobs = nil
	}
}

// large turns the first change into a pointer to a large file that the changeset includes.
func large(c *changeset.Changeset, content string) changeset.Pointer {
	p, text := changeset.PointerTo([]byte(content))
	delete(c.Blobs, change(c).Blob)
	change(c).Blob = changeset.BlobID([]byte(text))
	c.Blobs[change(c).Blob] = []byte(text)
	c.LFS = map[string][]byte{p.OID: []byte(content)}
	return p
}

// alterations modify a valid changeset; want is empty if it stays valid.
var alterations = map[string]struct {
	change func(*changeset.Changeset)
	want   string // part of the error; empty: valid
}{
	"as it is":                {func(*changeset.Changeset) {}, ""},
	"nothing":                 {func(c *changeset.Changeset) { *c = changeset.Changeset{Base: base} }, ""},
	"empty commit":            {func(c *changeset.Changeset) { c.Commits[1].Changes = nil }, ""},
	"base is a name":          {func(c *changeset.Changeset) { c.Base = "main" }, "base"},
	"base in capitals":        {func(c *changeset.Changeset) { c.Base = strings.ToUpper(base) }, "base"},
	"commit id":               {func(c *changeset.Changeset) { c.Commits[0].ID = "x" }, "id is not a commit id"},
	"commit twice":            {func(c *changeset.Changeset) { c.Commits[1].ID = first }, "twice"},
	"commit is the base":      {func(c *changeset.Changeset) { c.Commits[0].ID = base }, "twice"},
	"tree id":                 {func(c *changeset.Changeset) { c.Commits[0].Tree = "" }, "tree"},
	"no parent":               {func(c *changeset.Changeset) { c.Commits[0].Parents = nil }, "0 parents"},
	"three parents":           {func(c *changeset.Changeset) { c.Commits[1].Parents = []string{first, other, tree} }, "3 parents"},
	"chain broken":            {func(c *changeset.Changeset) { c.Commits[1].Parents = []string{base} }, "first parent"},
	"order turned":            {func(c *changeset.Changeset) { c.Commits[0], c.Commits[1] = c.Commits[1], c.Commits[0] }, "first parent"},
	"merge with the chain":    {func(c *changeset.Changeset) { c.Commits[1].Parents[1] = base }, "second parent"},
	"merge with itself":       {func(c *changeset.Changeset) { c.Commits[1].Parents[1] = second }, "second parent"},
	"message not UTF-8":       {func(c *changeset.Changeset) { c.Commits[0].Message = "\xff" }, "UTF-8"},
	"message with NUL":        {func(c *changeset.Changeset) { c.Commits[0].Message = "a\x00b" }, "NUL"},
	"message too long":        {func(c *changeset.Changeset) { c.Commits[0].Message = strings.Repeat("m", 65<<10) }, "too large"},
	"too many commits":        {func(c *changeset.Changeset) { c.Commits = make([]changeset.Commit, 1001) }, "too large"},
	"too many changes":        {func(c *changeset.Changeset) { c.Commits[0].Changes = make([]changeset.Change, 20001) }, "too large"},
	"too many notes":          {func(c *changeset.Changeset) { c.Notes = make([]string, 101) }, "too large"},
	"note not UTF-8":          {func(c *changeset.Changeset) { c.Notes = []string{"\xff"} }, "note"},
	"unknown mode":            {func(c *changeset.Changeset) { change(c).Mode = "rw-r--" }, "unknown mode"},
	"mode too short":          {func(c *changeset.Changeset) { change(c).Mode = "0644" }, "unknown mode"},
	"unknown old mode":        {func(c *changeset.Changeset) { change(c).OldMode = "0" }, "unknown old mode"},
	"blob id":                 {func(c *changeset.Changeset) { change(c).Blob = "../../x" }, "not an object id"},
	"deleted with content":    {func(c *changeset.Changeset) { change(c).Mode = ""; change(c).OldMode = changeset.ModeFile }, "with content"},
	"deleted from nothing":    {func(c *changeset.Changeset) { change(c).Mode = ""; change(c).Blob = "" }, "neither"},
	"blob missing":            {func(c *changeset.Changeset) { delete(c.Blobs, change(c).Blob) }, "missing"},
	"blob of another content": {func(c *changeset.Changeset) { c.Blobs[change(c).Blob] = []byte("x") }, "does not match its id"},
	"blob of no path":         {func(c *changeset.Changeset) { c.Blobs[changeset.BlobID(nil)] = []byte{} }, "no path"},
	"a large file":            {func(c *changeset.Changeset) { large(c, "content") }, ""},
	"a large file that is another": {func(c *changeset.Changeset) {
		large(c, "content")
		for oid := range c.LFS {
			c.LFS[oid] = []byte("contenx")
		}
	}, "does not match its id"},
	"a large file of no pointer": {func(c *changeset.Changeset) {
		p, _ := changeset.PointerTo([]byte("x"))
		c.LFS = map[string][]byte{p.OID: []byte("x")}
	}, "no pointer names it"},
	"a large file of another size": {func(c *changeset.Changeset) {
		p := large(c, "content")
		delete(c.Blobs, change(c).Blob)
		p.Size++
		text := []byte(p.String())
		change(c).Blob = changeset.BlobID(text)
		c.Blobs[change(c).Blob] = text
	}, "no pointer names it"},
	"large files too large": {func(c *changeset.Changeset) { large(c, strings.Repeat("x", 64<<20)) }, "too large"},
	"same path twice": {func(c *changeset.Changeset) {
		c.Commits[0].Changes[1] = c.Commits[0].Changes[0]
	}, "twice"},
	"not sorted": {func(c *changeset.Changeset) {
		c.Commits[0].Changes[0], c.Commits[0].Changes[1] = c.Commits[0].Changes[1], c.Commits[0].Changes[0]
	}, "not sorted"},
	"file and directory": {func(c *changeset.Changeset) {
		c.Commits[0].Changes[0].Path = "dir"
	}, "a file and a directory"},
	"file becomes directory": {func(c *changeset.Changeset) {
		c.Commits = c.Commits[:1]
		c.Commits[0].Changes[0] = changeset.Change{Path: "dir", OldMode: changeset.ModeFile}
		delete(c.Blobs, changeset.BlobID([]byte("one\n")))
	}, ""},
	"path empty":               {path(""), "empty path"},
	"path absolute":            {path("/etc/passwd"), "absolute"},
	"path up":                  {path("a/../b"), ".. part"},
	"path here":                {path("./a"), ". or .."},
	"path with empty part":     {path("a//b"), "empty part"},
	"path ends with slash":     {path("a/"), "empty part"},
	"path with NUL":            {path("a\x00b"), "control"},
	"path with line end":       {path("a\nb"), "control"},
	"path not UTF-8":           {path("a\xff"), "UTF-8"},
	"path too long":            {path(strings.Repeat("a/", 2048) + "a"), "too large"},
	"path .git":                {path(".git/config"), ".git"},
	"path .GIT":                {path("a/.GiT/hooks/x"), ".git"},
	"path .git.":               {path(".git. ./x"), ".git"},
	"path git~1":               {path("GIT~1/config"), ".git"},
	"path .git stream":         {path(".git::$INDEX_ALLOCATION/x"), ".git"},
	"path .git with ignorable": {path(".g\u200cit/config"), ".git"},
	"path .git by backslash":   {path(`a\.git\config`), ".git"},
	"path .gitignore":          {path(".gitignore"), ""},
	"path with spaces":         {path("a b/ü ñ.txt"), ""},
	"path with backslash":      {path(`a\b`), ""},
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range alterations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sample()
			test.change(c)
			err := c.Validate(changeset.DefaultLimits())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one about %q", err, test.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	limits := changeset.DefaultLimits()
	limits.Encoded = int64(len(data)) - 1
	if _, err := changeset.Decode(bytes.NewReader(data), limits); !errors.Is(err, changeset.ErrTooLarge) {
		t.Errorf("encode: got error %v", err)
	}
	limits = changeset.DefaultLimits()
	limits.Blobs = 8
	if _, err := changeset.Decode(bytes.NewReader(data), limits); !errors.Is(err, changeset.ErrTooLarge) {
		t.Errorf("blobs: %v", err)
	}
}

func TestDecodeRefusesInvalidInput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":         "",
		"no object":       `[]`,
		"cut":             `{"base":"` + base + `"`,
		"unknown field":   `{"base":"` + base + `","commits":[],"blobs":{},"run":"x"}`,
		"more after it":   `{"base":"` + base + `","commits":[],"blobs":{}} {}`,
		"blob not base64": `{"base":"` + base + `","commits":[],"blobs":{"x":"*"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c, err := changeset.Decode(strings.NewReader(text), changeset.DefaultLimits()); err == nil {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	c := sample()
	want := changeset.Stats{Commits: 2, Added: 1, Modified: 1, Deleted: 1, Bytes: 9}
	if diff := cmp.Diff(want, c.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if got := c.Stats().Paths(); got != 3 {
		t.Errorf("%d paths differ, want 3", got)
	}
	if c.Empty() {
		t.Error("a changeset with commits is reported as empty")
	}
	if c.Head() != second {
		t.Errorf("got head %s", c.Head())
	}
	none := &changeset.Changeset{Base: base, Commits: []changeset.Commit{{ID: first}}}
	if !none.Empty() || (&changeset.Changeset{Base: base}).Head() != base {
		t.Error("an empty changeset is not reported as empty")
	}
}
