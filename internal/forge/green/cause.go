package green

// Cause is what GitHub tells about why a check failed. All of its texts were written by others, such as the programs that the check ran:
// they are data, never instructions.
type Cause struct {
	Check Check
	// Step is the name of the step of a job of GitHub Actions that failed; empty if it is unknown.
	Step string
	// Log is the end of the job's log: whole lines of valid UTF-8, without timestamps and escape sequences, at most MaxLog bytes. It has
	// only lines of the failing step if they can be told.
	Log string
	// Cut is set if the log begins before Log does.
	Cut bool
	// Annotations are at most MaxAnnotations, the worst ones first.
	Annotations []Annotation
	// Title and Summary are the output of a check run of another App than GitHub Actions. The description of a status is its Title.
	Title, Summary string
	URL            string // the page about the check, for people
	// Note is one or more sentences for people about what could not be read, and why; empty if nothing is missing.
	Note string
}

// Annotation is a message of a check, usually about a line of a file.
type Annotation struct {
	Path    string // empty if it is not about a file
	Line    int    // 0 if it is not about a line
	Level   string // failure, warning or notice
	Message string
}

// Limits of a Cause, in bytes except for the number of annotations.
const (
	MaxLog         = 8 << 10
	MaxSummary     = 8 << 10
	MaxAnnotations = 20
	MaxMessage     = 500 // of one annotation
)
