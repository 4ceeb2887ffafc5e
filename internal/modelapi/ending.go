package modelapi

// Ending is how a streamed answer ended. Only incomplete answers that programs do not report are distinguished: Gemini
// CLI treats them as complete.
type Ending int

// The endings.
const (
	EndingNormal    Ending = iota // or unknown
	EndingTruncated               // at the output limit
	EndingBlocked                 // the provider blocked the rest
)

// Ending returns, after Close, how a streamed answer ended.
func (c *Counter) Ending() Ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// geminiEnding returns the reason that Gemini reports for the end of an answer.
func (s *payload) geminiEnding() Ending {
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
