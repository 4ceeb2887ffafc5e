package runner

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// source is one stream of a running command's output.
type source interface {
	// Read returns io.EOF only after finish, when all output of the command has been read.
	Read(p []byte) (int, error)
	// writer is the command's end of the stream. The source closes it.
	writer() *os.File
	// started is called once the command has its own copy of writer.
	started()
	// finish is called after all processes of the command have ended.
	finish()
	close()
}

// output copies the two streams of a running command into the log.
type output struct {
	sources []source
	group   sync.WaitGroup
}

// startRecorded starts a command whose output goes into the log.
func (s *supervisor) startRecorded(part runPart) (process, *output, error) {
	open := openPipe
	if part.outputFile {
		open = s.openFile
	}
	stdout, err := open()
	if err != nil {
		return nil, nil, err
	}
	stderr, err := openPipe()
	if err != nil {
		stdout.close()
		return nil, nil, err
	}
	out := &output{sources: []source{stdout, stderr}}
	part.command.Stdout, part.command.Stderr = stdout.writer(), stderr.writer()
	process, err := s.user.start(part.command, part.stdin, s.isolation)
	if err != nil {
		out.close()
		return nil, nil, err
	}
	for i, stream := range []runlog.Stream{part.stdout, part.stderr} {
		out.sources[i].started()
		out.group.Go(func() { s.log.copyLines(out.sources[i], stream, s.spec.MaxLine) })
	}
	return process, out, nil
}

// wait returns when both streams have been read to their end. It is called after all processes have ended.
func (o *output) wait() {
	for _, source := range o.sources {
		source.finish()
	}
	o.group.Wait()
	o.close()
}

func (o *output) close() {
	for _, source := range o.sources {
		source.close()
	}
}

// pipe is a source that blocks the command while the log cannot keep up. Output that a program has not written when it
// exits is lost, so a pipe is unsuitable for an agent's answer.
type pipe struct {
	ours, theirs *os.File
}

func openPipe() (source, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	return &pipe{ours: r, theirs: w}, nil
}

// drainTimeout bounds the wait for the end of the output after all processes have ended. Only a process that escaped,
// without isolation, can hold a pipe open for longer.
const drainTimeout = 5 * time.Second

func (p *pipe) Read(b []byte) (int, error) { return p.ours.Read(b) }
func (p *pipe) writer() *os.File           { return p.theirs }
func (p *pipe) started()                   { _ = p.theirs.Close() }
func (p *pipe) finish()                    { _ = p.ours.SetReadDeadline(time.Now().Add(drainTimeout)) }
func (p *pipe) close()                     { _, _ = p.ours.Close(), p.theirs.Close() }
