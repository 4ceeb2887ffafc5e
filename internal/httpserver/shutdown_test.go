package httpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/httpserver"
)

// TestEndAnswersAcceptedConnections: at its end the server answers requests on connections that it has accepted, whether their request
// was read or not, and waits neither for idle connections nor for those that never bring a request.
func TestEndAnswersAcceptedConnections(t *testing.T) {
	t.Parallel()
	const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
	for name, tt := range map[string]struct {
		first, before, after string // sent and answered before the end, only sent before it, and sent after it began
		answers              int    // after first
	}{
		"part of a request":    {before: head, after: "\r\n", answers: 1},
		"nothing yet":          {after: head + "\r\n", answers: 1},
		"never a request":      {},
		"idle after a request": {first: head + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			accepted, read := make(chan struct{}, 1000), make(chan string, 10)
			go func() {
				ended <- httpserver.Server{
					Listener: telling{ln, accepted, read}, Shutdown: time.Minute,
					Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
				}.Serve(ctx)
			}()
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			if err := nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			<-accepted
			r := bufio.NewReader(nc)
			send := func(text string) {
				if _, err := io.WriteString(nc, text); err != nil {
					t.Fatal(err)
				}
			}
			if tt.first != "" {
				send(tt.first)
				answered(t, r)
			}
			send(tt.before)
			for got := ""; got != tt.first+tt.before; {
				got += <-read
			}
			end()
			<-closed(ln)
			send(tt.after)
			for range tt.answers {
				answered(t, r)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(30 * time.Second):
				t.Error("the server waits for a connection without a request")
			}
		})
	}
}

// telling tells when a connection was accepted, and what was read.
type telling struct {
	net.Listener
	accepted chan<- struct{}
	read     chan<- string
}

func (l telling) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted <- struct{}{}
	return tellingConn{nc, l.read}, nil
}

type tellingConn struct {
	net.Conn
	read chan<- string
}

func (c tellingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read <- string(b[:n])
	}
	return n, err
}

// closed is closed when a listener takes no connection.
func closed(ln net.Listener) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second)
			if err != nil {
				return
			}
			_ = nc.Close()
		}
	}()
	return done
}

func answered(t *testing.T, r *bufio.Reader) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
