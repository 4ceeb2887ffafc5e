package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runlog"
)

// shortened is the file name suffix of a transcript that is being shortened.
const shortened = ".new"

// shorten replaces the file by one without its oldest records: the header, a record with the number of dropped records,
// and the newest records that fit into half of the limit. If the process dies, one of the two complete files exists.
func (t *Transcript) shorten() error {
	in, err := os.Open(t.path)
	if err != nil {
		return fmt.Errorf("shorten transcript: %w", err)
	}
	defer func() { _ = in.Close() }()
	r := bufio.NewReaderSize(in, 64<<10)
	head, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("shorten transcript: %w", err)
	}
	gone, err := dropOldest(r, t.size-int64(len(head))-t.shortenAt/2)
	if err != nil {
		return fmt.Errorf("shorten transcript: %w", err)
	}
	replaced := t.replace(head, gone, r)
	if replaced != nil && t.isCurrentFile() {
		return fmt.Errorf("shorten transcript: %w", replaced)
	}
	_ = t.file.Close() // the new file contains all of it
	if err := t.open(); err != nil {
		return errors.Join(replaced, err)
	}
	t.shortenAt = max(t.d.maxTranscript, t.size*3/2) // retry one that cannot be shortened only after it has grown
	if replaced != nil {
		return fmt.Errorf("shorten transcript: %w", replaced)
	}
	return nil
}

// isCurrentFile reports whether the open file still has the transcript's name. A shorter file may have replaced it even if an
// error reports that the folder could not be synced.
func (t *Transcript) isCurrentFile() bool {
	mine, err := t.file.Stat()
	named, nerr := os.Stat(t.path)
	return err != nil || nerr != nil || os.SameFile(mine, named)
}

// replace writes the shorter file and renames it into place.
func (t *Transcript) replace(head []byte, gone runlog.Dropped, rest io.Reader) error {
	notice := runlog.Event{Seq: gone.Last, Time: gone.Until, Kind: runlog.KindNotice, Text: gone.Words()}
	mark, err := json.Marshal(runlog.Entry{Dropped: &gone, Events: []runlog.Event{notice}})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(t.path+shortened, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	size, err := io.Copy(out, io.MultiReader(bytes.NewReader(head), bytes.NewReader(append(mark, '\n')), rest))
	if err != nil {
		return errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	err = durable.Place(out, t.path)
	if err == nil || !t.isCurrentFile() {
		t.size = size
	}
	return err
}

// dropOldest skips at least bytesOver bytes of complete records and counts them, including those that were dropped
// earlier.
func dropOldest(r *bufio.Reader, bytesOver int64) (runlog.Dropped, error) {
	var gone runlog.Dropped
	for over := int64(0); over < bytesOver; {
		line, err := r.ReadBytes('\n')
		over += int64(len(line))
		if errors.Is(err, io.EOF) {
			return gone, nil
		}
		if err != nil {
			return gone, err
		}
		var e runlog.Entry
		if len(bytes.TrimSpace(line)) == 0 || json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Dropped != nil {
			gone = *e.Dropped
			continue
		}
		gone.Records++
		gone.Bytes += int64(len(line))
		if e.Line != nil {
			gone.Last, gone.Until = e.Line.Seq, e.Line.Time
		}
	}
	return gone, nil
}
