package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// endGrace is the time for a canceled command to end in an orderly way before its caller returns.
const endGrace = 2 * time.Second

type stdinMode int

const (
	closeStdin stdinMode = iota // write Cmd.Stdin, then close
	keepStdin                   // the caller writes
)

// process is one command on one channel.
type process struct {
	client *Client
	ctx    context.Context
	sess   *ssh.Session
	stdin  io.WriteCloser
	stdout io.Reader // nil if start was given a writer
	stderr tailBuffer

	ended  chan struct{} // closed after err is set
	err    error         // the result of Session.Wait
	detach func() bool   // detaches from ctx
	killed atomic.Bool   // ctx ended first
}

// start opens a channel and starts the command on it. From then on, the end of ctx ends the command.
func (c *Client) start(ctx context.Context, cmd Cmd, stdout io.Writer, mode stdinMode) (*process, error) {
	line, err := cmd.line()
	if err != nil {
		return nil, err
	}
	p := &process{client: c, ctx: ctx, ended: make(chan struct{})}
	opened := make(chan error, 1)
	go func() { // ends with the answer of the VM, or with the connection
		err := p.open(line, stdout)
		opened <- err
		if err == nil {
			p.err = p.sess.Wait()
		}
		close(p.ended)
	}()
	select {
	case err = <-opened:
	case <-ctx.Done():
		go func() { // close a session that opens too late
			if <-opened == nil {
				_ = p.sess.Close()
			}
		}()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Argv[0], c.explainTransportError(err))
	}
	p.detach = context.AfterFunc(ctx, p.kill)
	p.copyStdin(cmd.Stdin, mode)
	return p, nil
}

func (p *process) open(line string, stdout io.Writer) error {
	sess, err := p.client.conn.NewSession()
	if err != nil {
		return err
	}
	p.sess = sess
	sess.Stderr = &p.stderr
	if p.stdin, err = sess.StdinPipe(); err == nil {
		if stdout != nil {
			sess.Stdout = stdout
		} else {
			p.stdout, err = sess.StdoutPipe()
		}
	}
	if err == nil {
		err = sess.Start(line)
	}
	if err != nil {
		_ = sess.Close()
	}
	return err
}

func (p *process) copyStdin(stdin io.Reader, mode stdinMode) {
	switch {
	case mode == keepStdin:
	case stdin == nil:
		_ = p.stdin.Close()
	default:
		go func() { // ends with the reader, or when the channel takes no more
			_, _ = io.Copy(p.stdin, stdin)
			_ = p.stdin.Close()
		}()
	}
}

// kill sends SIGTERM to the command and closes the channel.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.sess.Signal(ssh.SIGTERM)
	_ = p.sess.Close()
}

// wait returns when the command has ended, or soon after ctx has.
func (p *process) wait() (Result, error) {
	defer p.detach()
	select {
	case <-p.ended:
	case <-p.ctx.Done():
		grace := time.NewTimer(endGrace)
		defer grace.Stop()
		select {
		case <-p.ended:
		case <-grace.C:
			return Result{Stderr: p.stderr.bytes()}, context.Cause(p.ctx)
		}
	}
	res := Result{Stderr: p.stderr.bytes()}
	var exit *ssh.ExitError
	switch {
	case p.killed.Load():
		return res, context.Cause(p.ctx)
	case p.err == nil:
		return res, nil
	case errors.As(p.err, &exit):
		res.Code, res.Signal = exit.ExitStatus(), exit.Signal()
		return res, nil
	default:
		return res, p.client.explainTransportError(p.err)
	}
}

// stream is a command's output, and for Attach also its input, as a byte stream.
type stream struct {
	process *process
	cancel  func()
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.process.stdout.Read(b)
	if err == nil || n > 0 {
		return n, nil
	}
	if cause := s.process.client.Err(); cause != nil {
		return 0, cause
	}
	if s.process.killed.Load() {
		return 0, context.Cause(s.process.ctx)
	}
	return 0, err
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.process.stdin.Write(b)
	if err != nil {
		if cause := s.process.client.Err(); cause != nil {
			return n, cause
		}
	}
	return n, err
}

// Close ends the command. It may be called repeatedly.
func (s *stream) Close() error {
	s.cancel()
	return nil
}

// headBuffer keeps the first limit bytes and calls full if there are more.
type headBuffer struct {
	limit int
	full  func()

	mu       sync.Mutex
	buf      []byte
	exceeded bool
}

func (b *headBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.limit - len(b.buf)
	if len(p) <= room {
		b.buf = append(b.buf, p...)
		return len(p), nil
	}
	b.buf = append(b.buf, p[:room]...)
	if !b.exceeded {
		b.exceeded = true
		b.full()
	}
	return len(p), nil // dropped: the channel must be drained until it is closed
}

func (b *headBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf
}

func (b *headBuffer) isFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.exceeded
}

// tailBuffer keeps the last stderrTail bytes.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if extra := len(b.buf) - stderrTail; extra > stderrTail { // amortised
		b.buf = append(b.buf[:0], b.buf[extra:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	tail := b.buf
	if len(tail) > stderrTail {
		tail = tail[len(tail)-stderrTail:]
		if i := bytes.IndexByte(tail, '\n'); i >= 0 { // complete lines only: the redactor would not recognize a part of a secret
			tail = tail[i+1:]
		}
	}
	return append([]byte(nil), tail...)
}
