package state

import "testing"

// TestFreezeHashIsStable: stored hashes of texts without files must stay valid.
func TestFreezeHashIsStable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		title, body string
		files       []string
		want        string
	}{
		"text":        {"It breaks", "Always.\r\n", nil, "7a046537a04c53f7549268bd3da8423446c0ec93ce8521244170ef5f51b0282c"},
		"with a file": {"It breaks", "Always.", []string{"00ff"}, "79abdf138a1892d1ba3750f8f5f0a307d926411b5b51dcecedd6450c073cd323"},
	} {
		if got := FreezeHash(tc.title, tc.body, tc.files...); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
