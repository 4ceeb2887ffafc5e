package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTooManyHeaders sends requests over one connection each, in pieces as they come.
func TestTooManyHeaders(t *testing.T) {
	t.Parallel()
	request := func(headers int, body string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", len(body))
		for i := range headers {
			fmt.Fprintf(&b, "H%d:\r\n", i)
		}
		return b.String() + "\r\n" + body
	}
	const (
		usual  = 50
		hungUp = 0 // without an answer
	)
	lines := strings.Repeat("\n", 20_000)
	tests := map[string]struct {
		requests []string
		want     []int
	}{
		"as many as a browser sends behind proxies": {[]string{request(usual, "")}, []int{200}},
		"a body of many lines":                      {[]string{request(usual, lines)}, []int{200}},
		"many requests over one connection":         {[]string{request(usual, lines), request(usual, ""), request(usual, lines)}, []int{200, 200, 200}},
		"too many":                                  {[]string{request(200, "")}, []int{400}},
		"too many, without end":                     {[]string{strings.TrimSuffix(request(200, ""), "\r\n")}, []int{400}},
		"too many in a later request":               {[]string{request(usual, lines), request(200, "")}, []int{200, hungUp}},
		"bare line feeds":                           {[]string{strings.ReplaceAll(request(200, ""), "\r\n", "\n")}, []int{400}},
		"folded lines":                              {[]string{"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n" + strings.Repeat(" c\r\n", 200) + "\r\n"}, []int{400}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
			srv.Listener = fewHeaders{srv.Listener}
			srv.Config.ConnState = nextHead
			srv.Start()
			t.Cleanup(srv.Close)
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			answers := bufio.NewReader(conn)
			for i, text := range test.requests {
				if _, err := io.WriteString(conn, text); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(answers, nil)
				if err != nil && test.want[i] == hungUp {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != test.want[i] {
					t.Errorf("request %d: status %d, want %d", i, resp.StatusCode, test.want[i])
				}
			}
		})
	}
}
