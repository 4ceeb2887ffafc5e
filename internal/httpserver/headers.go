package httpserver

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// maxHeaders bounds the lines of a request's head. A short one takes the parser twenty times its length, so a bound on
// the bytes is not enough.
const maxHeaders = 100

var errTooManyHeaders = errors.New("the request has too many headers")

// fewHeaders is a listener whose connections fail when the head of a request has too many lines.
type fewHeaders struct{ net.Listener }

// Accept returns the next connection.
func (l fewHeaders) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: nc}, nil
}

// headConn counts the lines that come before an empty one.
type headConn struct {
	net.Conn

	mu    sync.Mutex
	begun bool // part of the head was received
	lines int
	empty bool // the current line is empty so far
	body  bool // the head has ended
}

// NetConn returns the connection below.
func (c *headConn) NetConn() net.Conn { return c.Conn }

// Read reads, and fails where a head has too many lines.
func (c *headConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = c.begun || n > 0
	for i := 0; i < n && !c.body; i++ {
		switch b[i] {
		case '\r':
		case '\n':
			c.lines++
			c.body, c.empty = c.empty, true
		default:
			c.empty = false
		}
	}
	if c.lines > maxHeaders {
		return 0, errTooManyHeaders
	}
	return n, err
}

// CloseWrite closes the sending side, so that the response arrives even if the request was not read completely.
func (c *headConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// nextHead is part of an http.Server's ConnState: a connection that is idle is about to bring the head of another request.
func nextHead(nc net.Conn, s http.ConnState) {
	if c, ok := nc.(*headConn); ok && s == http.StateIdle {
		c.mu.Lock()
		c.begun, c.lines, c.empty, c.body = false, 0, false, false
		c.mu.Unlock()
	}
}

// headBegun reports whether part of a request's head has come over an idle connection.
func headBegun(nc net.Conn) bool {
	c, ok := nc.(*headConn)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}
