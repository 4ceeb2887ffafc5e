package runlog

import "testing"

func TestInputWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ input, want string }{
		"a command":       {`{"command":"cat \u003e a.go \u003c\u003c'EOF'\nx \u0026\u0026 y\nEOF\n"}`, "cat > a.go <<'EOF'\nx && y\nEOF"},
		"with a purpose":  {`{"description":"Run tests","command":"go test ./..."}`, "description: Run tests\ngo test ./..."},
		"fields in order": {`{"file_path":"b.go","limit":20,"all":true,"content":"one\ntwo"}`, "file_path: b.go\nlimit: 20\nall: true\ncontent:\none\ntwo"},
		"cut off":         {`{"command":"cat`, `{"command":"cat`},
		"text":            {"just text", "just text"},
		"a list":          {`["a"]`, `["a"]`},
		"nothing":         {"", ""},
		"an empty object": {"{}", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := InputWords(c.input); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
