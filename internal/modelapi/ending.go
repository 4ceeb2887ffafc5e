package modelapi

// Ending says how a streamed answer ended. Only endings are told of which a program says nothing: Gemini CLI takes what had come
// by then for the whole answer.
type Ending int

// The endings.
const (
	EndingNormal    Ending = iota // as far as is known
	EndingTruncated               // at the limit of output
	EndingBlocked                 // the provider did not let the rest pass
)

// Ending returns, after Close, how a streamed answer ended.
func (c *Counter) Ending() Ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// ending reads the reason that Gemini gives for the end of an answer.
func (s *payload) ending() Ending {
	for _, c := range s.Candidates {
		switch c.Finish {
		case "MAX_TOKENS":
			return EndingTruncated
		case "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
			return EndingBlocked
		}
	}
	return EndingNormal
}
