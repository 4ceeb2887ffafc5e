package scan

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const (
	maxNesting = 50
	maxNodes   = 500 // of one mapping or list
)

// parseYAML returns the first document of a file, nil if it is empty, and false if the file is not YAML. Only the nodes are read, so
// aliases are never expanded.
func parseYAML(text string) (body ast.Node, ok bool) {
	if len(text) > maxFile || isDeep(text) {
		return nil, false
	}
	defer func() {
		if recover() != nil { // other people write the parser's input
			body, ok = nil, false
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, false
	}
	if len(file.Docs) == 0 {
		return nil, true
	}
	return file.Docs[0].Body, true
}

// isDeep reports whether the nesting could exhaust the parser's stack.
func isDeep(text string) bool {
	open := 0
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " -?\t")
		if len(line)-len(rest) > 4*maxNesting {
			return true
		}
		for _, c := range rest {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(open-1, 0)
			}
			if open > maxNesting {
				return true
			}
		}
	}
	return false
}

// pairs returns the pairs of a mapping.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values[:min(len(m.Values), maxNodes)]
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}

// child returns the value of a key of a mapping, or nil.
func child(n ast.Node, keys ...string) ast.Node {
	for _, key := range keys {
		var next ast.Node
		for _, p := range pairs(n) {
			if p.Key != nil && scalar(p.Key) == key {
				next = p.Value
			}
		}
		n = next
	}
	return n
}

func keysOf(n ast.Node) (keys []string) {
	for _, p := range pairs(n) {
		if p.Key != nil {
			keys = append(keys, scalar(p.Key))
		}
	}
	return keys
}

// elements returns the elements of a list.
func elements(n ast.Node) []ast.Node {
	if s, ok := n.(*ast.SequenceNode); ok {
		return s.Values[:min(len(s.Values), maxNodes)]
	}
	return nil
}

// scalar returns the text of a scalar, or "".
func scalar(n ast.Node) string {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		if v.Value != nil {
			return v.Value.Value
		}
	case ast.ScalarNode:
		if t := v.GetToken(); t != nil {
			return t.Value
		}
	}
	return ""
}
