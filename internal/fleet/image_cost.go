package fleet

const (
	// spansPerMonth divides a monthly price to get the hourly one.
	spansPerMonth = 730
	mbPerGB       = 1000
)

// imageMicroSpan returns the cost of mb megabytes for a span, rounded up so that caps hold.
func imageMicroSpan(mb, microGBMonth int64) int64 {
	const divisor = mbPerGB * spansPerMonth
	return (max(mb, 0)*microGBMonth + divisor - 1) / divisor
}
