package gates

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxNesting bounds how deep the elements of a report are nested.
const maxNesting = 100

// maxSources is how many source folders a Cobertura report may name.
const maxSources = 50

// xmlReader reads the tokens of a report. Go's decoder knows no entities but those of XML itself, and loads nothing.
type xmlReader struct {
	in    *bufio.Reader
	left  int // bytes that the token may still have
	depth int
	other error // why the encoding cannot be read
	*xml.Decoder
}

var errElement = fmt.Errorf("it has an element that is longer than %d KiB", maxElement>>10)

func newXMLReader(in *bufio.Reader) *xmlReader {
	x := &xmlReader{in: in}
	x.Decoder = xml.NewDecoder(x)
	x.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(label, "us-ascii") || strings.EqualFold(label, "ascii") {
			return in, nil
		}
		x.other = fmt.Errorf("its encoding is %s instead of UTF-8", literal(label))
		return nil, x.other
	}
	return x
}

// ReadByte implements [io.ByteReader]: the decoder reads no further than it needs.
func (x *xmlReader) ReadByte() (byte, error) {
	if x.left--; x.left < 0 {
		return 0, errElement
	}
	return x.in.ReadByte()
}

// Read implements [io.Reader].
func (x *xmlReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := x.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

// next returns the next token, or io.EOF after the last one.
func (x *xmlReader) next() (xml.Token, error) {
	x.left = maxElement
	token, err := x.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if x.other != nil {
			return nil, x.other
		}
		if errors.Is(err, errElement) {
			return nil, errElement
		}
		return nil, fmt.Errorf("it is not complete, valid XML: %s", plain(err.Error()))
	}
	switch token.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > maxNesting {
			return nil, errors.New("its elements are nested too deep")
		}
	case xml.EndElement:
		x.depth--
	}
	return token, nil
}

// attribute returns the value of an attribute, empty if it is missing.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// parseXML reads a report in XML. The name of the first element tells which it is.
func (m *measurement) parseXML(in *bufio.Reader, report string) (kind, error) {
	x := newXMLReader(in)
	for {
		token, err := x.next()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("it has no XML element")
		} else if err != nil {
			return 0, err
		}
		root, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch root.Name.Local {
		case "coverage":
			return kindCoverage, x.each((&cobertura{m: m, report: report}).token)
		case "report":
			return kindCoverage, x.each((&jacoco{m: m, report: report}).token)
		case "mutations":
			return kindMutation, x.each((&pit{m: m, report: report}).token)
		}
		return 0, fmt.Errorf("its first element is %s, so it is none of Cobertura, JaCoCo and PIT", literal(root.Name.Local))
	}
}

// each passes all further tokens on.
func (x *xmlReader) each(take func(xml.Token) error) error {
	for {
		token, err := x.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := take(token); err != nil {
			line, _ := x.InputPos()
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// cobertura reads Cobertura's reports: classes with the names of their files, and lines with how often they ran.
type cobertura struct {
	m       *measurement
	report  string
	sources []string
	text    *strings.Builder // of a source
	inClass bool
	file    string
	changed bool
}

func (c *cobertura) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return c.start(t)
	case xml.CharData:
		if c.text != nil && c.text.Len() < maxPath {
			c.text.Write(t)
		}
	case xml.EndElement:
		switch t.Name.Local {
		case "source":
			return c.endSource()
		case "class":
			c.inClass, c.changed = false, false
		}
	}
	return nil
}

// endSource adds a source folder. Names may lead to other files from there on.
func (c *cobertura) endSource() error {
	if c.text == nil {
		return nil
	}
	source := strings.TrimSpace(c.text.String())
	c.text = nil
	if slices.Contains(c.sources, source) {
		return nil
	}
	if len(c.sources) == maxSources {
		return fmt.Errorf("it has more than %d source folders", maxSources)
	}
	c.sources = append(c.sources, source)
	clear(c.m.names.found)
	return nil
}

func (c *cobertura) start(t xml.StartElement) error {
	switch t.Name.Local {
	case "source":
		c.text = &strings.Builder{}
	case "class":
		name := attribute(t, "filename")
		c.inClass = true
		c.file, c.changed = c.m.resolve(name, func() match { return c.m.files.find(name, c.sources, c.report) })
	case "line":
		if !c.inClass {
			return errors.New("a line belongs to no class")
		}
		line, covered, err := lineAndHits(attribute(t, "number"), attribute(t, "hits"))
		if err != nil {
			return err
		}
		if c.changed {
			c.m.mark(c.file, line, covered)
		}
	}
	return nil
}

// jacoco reads JaCoCo's reports: packages with source files, and lines with how many of their instructions ran.
type jacoco struct {
	m       *measurement
	report  string
	pkg     string
	inFile  bool
	file    string
	changed bool
}

func (j *jacoco) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		switch t.Name.Local {
		case "package":
			j.pkg = attribute(t, "name")
		case "sourcefile":
			name := sourceOf(j.pkg, attribute(t, "name"))
			j.inFile = true
			j.file, j.changed = j.m.resolve(name, func() match { return j.m.files.find(name, nil, j.report) })
		case "line":
			if !j.inFile {
				return errors.New("a line belongs to no source file")
			}
			line, covered, err := lineAndHits(attribute(t, "nr"), attribute(t, "ci"))
			if err != nil {
				return err
			}
			if j.changed {
				j.m.mark(j.file, line, covered)
			}
		}
	case xml.EndElement:
		switch t.Name.Local {
		case "package":
			j.pkg = ""
		case "sourcefile":
			j.inFile, j.changed = false, false
		}
	}
	return nil
}

// pit reads PIT's reports: mutants with the file, the line and whether a test detected them.
type pit struct {
	m      *measurement
	report string
	in     bool // a mutation
	field  string
	values map[string]string
}

func (p *pit) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		switch {
		case t.Name.Local == "mutation":
			p.in, p.field = true, ""
			p.values = map[string]string{"detected": attribute(t, "detected"), "status": attribute(t, "status")}
		case p.in:
			p.field = t.Name.Local
		}
	case xml.CharData:
		if isPITField(p.field) && len(p.values[p.field]) < maxPath {
			p.values[p.field] += string(t)
		}
	case xml.EndElement:
		p.field = ""
		if p.in && t.Name.Local == "mutation" {
			p.in = false
			return p.mutation()
		}
	}
	return nil
}

func isPITField(name string) bool {
	switch name {
	case "sourceFile", "mutatedClass", "lineNumber", "mutator", "description":
		return true
	}
	return false
}

// mutation adds one mutant.
func (p *pit) mutation() error {
	v := p.values
	line, err := strconv.Atoi(strings.TrimSpace(v["lineNumber"]))
	if err != nil {
		return fmt.Errorf("%s is not the number of a line", literal(v["lineNumber"]))
	}
	var detected bool
	switch v["detected"] {
	case "true", "false":
		detected = v["detected"] == "true"
	default:
		return errors.New("a mutation does not say whether it was detected")
	}
	class := strings.TrimSpace(v["mutatedClass"])
	pkg := ""
	if i := strings.LastIndexByte(class, '.'); i >= 0 {
		pkg = strings.ReplaceAll(class[:i], ".", "/")
	}
	name := sourceOf(pkg, strings.TrimSpace(v["sourceFile"]))
	file, changed := p.m.resolve(name, func() match { return p.m.files.find(name, nil, p.report) })
	if !changed {
		return nil
	}
	what := v["description"]
	if strings.TrimSpace(what) == "" {
		what = v["mutator"][strings.LastIndexByte(v["mutator"], '.')+1:]
	}
	text := strings.ToLower(strings.ReplaceAll(v["status"], "_", " ")) + ": " + what
	p.m.addMutant(mutant{file, line, plain(text)}, detected)
	return nil
}
